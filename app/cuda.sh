# Sourced by app/run and tests/cuda: which CUDA compiler is here, and for which GPUs the CUDA module is built.

# Where pip has put CUDA toolkits: among Python's packages, and where tests/cuda has one installed.
pip_toolkits() {
  local folder
  for folder in $(python3 -c 'import nvidia; print(*nvidia.__path__)' 2>/dev/null) "$PWD/build/cuda-toolkit/nvidia"; do
    find "$folder" -maxdepth 1 -name 'cu[0-9]*' 2>/dev/null || true
  done
}

# cuda_version NVCC: 13.0
cuda_version() { "$1" --version 2>/dev/null | sed -n 's/.*release \([0-9]*\.[0-9]*\).*/\1/p'; }

# The first nvcc of CUDA 12 or later of CUDACXX, PATH, CUDA_HOME (else /usr/local/cuda) and pip; nothing where there is none.
cuda_compiler() {
  local compiler version
  for compiler in "${CUDACXX:-}" "$(command -v nvcc)" $(printf '%s/bin/nvcc ' "${CUDA_HOME:-/usr/local/cuda}" $(pip_toolkits)); do
    [ -x "$compiler" ] || continue
    version=$(cuda_version "$compiler")
    if [ "${version%.*}" -ge 12 ] 2>/dev/null; then
      realpath "$compiler"
      return 0
    fi
  done
}

# cuda_options NVCC ARCHITECTURES: what `cmake --preset cuda` is told besides, one option a line. CMake does not find the libraries of pip's
# toolkits by itself: they lie in lib and have a version in their names.
cuda_options() {
  local libraries library found
  libraries=$(dirname "$1")/../lib
  printf '%s\n' "-DCMAKE_CUDA_COMPILER=$1" "-DSTATESCOPE_CUDA_ARCHITECTURES=$2"
  for library in CUDA_cublasLt_LIBRARY=libcublasLt.so CUDA_CUDART=libcudart.so; do
    found=$(find "$libraries" -maxdepth 1 -name "${library#*=}.*" 2>/dev/null | head -n 1)
    if [ -n "$found" ] && [ ! -e "$libraries/${library#*=}" ]; then
      printf '%s\n' "-D${library%=*}=$found" "-DCMAKE_MODULE_LINKER_FLAGS=-L$libraries"
    fi
  done
}

# gpu_architectures [NVCC]: compute capabilities of the GPUs that a driver tells of, a line each: 80. Nothing where no driver answers.
gpu_architectures() {
  { nvidia-smi --query-gpu=compute_cap --format=csv,noheader || "$(dirname "$1")/__nvcc_device_query"; } 2>/dev/null |
    tr ',' '\n' | sed -n 's/^ *\([0-9]*\)\.\{0,1\}\([0-9]\)$/\1\2/p' | sort -nu
}

# why_not_cuda NVCC ARCHITECTURE…: why the CUDA module cannot be built for these GPUs; nothing where it can.
why_not_cuda() {
  local compiler=$1 driver architecture
  shift
  if [ -z "$compiler" ]; then
    echo "no CUDA compiler is here (nvcc of CUDA 12 or later: README.md, \"On a GPU\", says how to install one)"
    return 0
  fi
  driver=$(nvidia-smi 2>/dev/null | sed -n 's/.*CUDA Version: \([0-9]*\).*/\1/p')
  if [ "${driver:-99}" -lt "$(cuda_version "$compiler" | cut -d. -f1)" ]; then
    echo "the driver knows CUDA $driver, the compiler $compiler is of CUDA $(cuda_version "$compiler")"
    return 0
  fi
  for architecture; do
    if [ "$architecture" -lt 80 ]; then
      echo "the GPU has compute capability ${architecture%?}.${architecture: -1}, less than 8.0"
    elif ! "$compiler" --list-gpu-arch | grep -x "compute_$architecture" >/dev/null; then
      echo "$compiler (CUDA $(cuda_version "$compiler")) is too old for compute capability ${architecture%?}.${architecture: -1}"
    fi
  done | head -n 1
}

# What app/run builds on this machine: sets build_preset, build_targets and build_options, and says in a line what becomes of a GPU.
choose_build() {
  local compiler architectures reason
  build_preset=release build_targets=(statescope) build_options=()
  compiler=$(cuda_compiler)
  mapfile -t architectures < <(gpu_architectures "$compiler")
  [ ${#architectures[@]} -gt 0 ] || return 0
  reason=$(why_not_cuda "$compiler" "${architectures[@]}")
  if [ -n "$reason" ]; then
    echo "app/run: the GPU is not used: $reason" >&2
    return 0
  fi
  build_preset=cuda build_targets+=(statescope-cuda)
  mapfile -t build_options < <(cuda_options "$compiler" "$(IFS=';' && echo "${architectures[*]/%/-real}")")
  echo "app/run: builds for this machine's GPU too (${architectures[*]/%/-real}, $compiler); --device cuda uses it" >&2
}
