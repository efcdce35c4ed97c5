# What `cmake --install` puts where (FHS), and the packages that cpack makes of it.
include(GNUInstallDirs)

set(id org.statescope.Statescope)
set(share ${CMAKE_INSTALL_DATADIR})
set(parts lib/statescope)  # beside bin/, as kernels/cpu/beside.h looks for them
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME runtime)

set(STATESCOPE_MAINTAINER "The Statescope authors <root@localhost>" CACHE STRING "Who answers for the packages: NAME <ADDRESS>")

# The manual page and the completions are the program's own account of its options. Debian wants its pages and changes compressed.
find_program(GZIP gzip REQUIRED)
set(manual ${CMAKE_BINARY_DIR}/manual)
configure_file(assets/packaging/changelog.in ${manual}/changelog @ONLY)
add_custom_command(
  OUTPUT ${manual}/statescope.1.gz ${manual}/changelog.gz ${manual}/statescope.bash ${manual}/_statescope ${manual}/statescope.fish
  COMMAND statescope manual > ${manual}/statescope.1
  COMMAND ${GZIP} -9nf ${manual}/statescope.1
  COMMAND ${GZIP} -9nkf ${manual}/changelog
  COMMAND statescope completion bash > ${manual}/statescope.bash
  COMMAND statescope completion zsh > ${manual}/_statescope
  COMMAND statescope completion fish > ${manual}/statescope.fish
  DEPENDS statescope ${manual}/changelog VERBATIM)
add_custom_target(statescope-manual ALL DEPENDS ${manual}/statescope.1.gz)

# All that is installed, and no test: `cmake --build --preset release --target installed`.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)
add_custom_target(installed DEPENDS statescope-manual)
foreach(target translations statescope-cuda statescope-mpi statescope-remote)
  if(TARGET ${target})
    add_dependencies(installed ${target})
  endif()
endforeach()

install(TARGETS statescope RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS statescope-reader RUNTIME DESTINATION ${parts})
install(TARGETS statescope-remote LIBRARY DESTINATION ${parts} COMPONENT remote)
if(STATESCOPE_CUDA)
  install(TARGETS statescope-cuda LIBRARY DESTINATION ${parts} COMPONENT cuda)
endif()
if(TARGET statescope-mpi)
  install(TARGETS statescope-mpi LIBRARY DESTINATION ${parts} COMPONENT mpi)
endif()
foreach(folder checkpoints clinic figures lessons placement prompts scores tasks texts)
  install(DIRECTORY assets/${folder} DESTINATION ${share}/statescope)
endforeach()
install(DIRECTORY assets/recipes/seeds DESTINATION ${share}/statescope/recipes FILES_MATCHING PATTERN *.json)  # that figures are made of
install(DIRECTORY ${CMAKE_BINARY_DIR}/translations DESTINATION ${share}/statescope OPTIONAL FILES_MATCHING PATTERN *.qm)
install(FILES ${manual}/statescope.1.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${manual}/statescope.bash DESTINATION ${share}/bash-completion/completions RENAME statescope)
install(FILES ${manual}/_statescope DESTINATION ${share}/zsh/vendor-completions)
install(FILES ${manual}/statescope.fish DESTINATION ${share}/fish/vendor_completions.d)
install(FILES assets/packaging/${id}.desktop DESTINATION ${share}/applications)
install(FILES assets/packaging/${id}.xml DESTINATION ${share}/mime/packages)
install(FILES assets/icons/statescope.svg DESTINATION ${share}/icons/hicolor/scalable/apps RENAME ${id}.svg)
configure_file(assets/packaging/${id}.metainfo.xml ${CMAKE_BINARY_DIR}/${id}.metainfo.xml @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/${id}.metainfo.xml DESTINATION ${share}/metainfo)
install(FILES README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
set(components runtime remote)
if(STATESCOPE_CUDA)
  list(APPEND components cuda)
endif()
if(TARGET statescope-mpi)
  list(APPEND components mpi)
endif()
foreach(component ${components})
  set(name statescope)
  if(NOT component STREQUAL runtime)
    set(name statescope-${component})
    configure_file(assets/packaging/lintian-overrides.in ${CMAKE_BINARY_DIR}/lintian/${name} @ONLY)
    install(FILES ${CMAKE_BINARY_DIR}/lintian/${name} DESTINATION ${share}/lintian/overrides COMPONENT ${component})
  endif()
  install(FILES LICENSE DESTINATION ${share}/doc/${name} RENAME copyright COMPONENT ${component})
  install(FILES ${manual}/changelog.gz DESTINATION ${share}/doc/${name} COMPONENT ${component})
endforeach()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME statescope)
set(CPACK_PACKAGE_CONTACT ${STATESCOPE_MAINTAINER})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "microscope for the memory of linear-attention language models")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL ${components})
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME statescope)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_DEPENDS qt6-qpa-plugins)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_RECOMMENDS "qt6-wayland, statescope-remote")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SUGGESTS ffmpeg)
set(CPACK_DEBIAN_CUDA_PACKAGE_NAME statescope-cuda)
set(CPACK_DEBIAN_CUDA_PACKAGE_DEPENDS "statescope (= ${PROJECT_VERSION}), libc6")  # and the cuBLASLt that the loader finds
set(CPACK_DEBIAN_MPI_PACKAGE_NAME statescope-mpi)
set(CPACK_DEBIAN_MPI_PACKAGE_DEPENDS "statescope (= ${PROJECT_VERSION}), openmpi-bin")
set(CPACK_DEBIAN_MPI_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_REMOTE_PACKAGE_NAME statescope-remote)
set(CPACK_DEBIAN_REMOTE_PACKAGE_DEPENDS "statescope (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_REMOTE_PACKAGE_SHLIBDEPS ON)
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION
    "It runs trained models exactly, steps through a text token by token, forwards
and back, and shows what their recurrent state does: a desktop program and a
command line, with lessons and small trained models.")
set(CPACK_COMPONENT_MPI_DESCRIPTION "The part of Statescope that spreads a command over the processes of a cluster.")
set(CPACK_COMPONENT_REMOTE_DESCRIPTION "The part of Statescope that connects a window with an engine
on another machine.")
set(CPACK_COMPONENT_CUDA_DESCRIPTION "The part of Statescope that runs models on NVIDIA GPUs.")
include(CPack)
