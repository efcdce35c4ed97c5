# Sourced by app/run and tests/run: installs what is missing, configures, builds.

build_options=()  # further arguments of cmake --preset

# Packages of app/packages and of the arguments that are not installed yet, from the distribution alone.
install_packages() {
  command -v apt-get >/dev/null || { echo "no apt-get here: install by hand what app/packages lists" >&2; return 0; }
  local missing=() entry name found
  for entry in $(grep -v '^#' app/packages) "$@"; do
    found=
    for name in ${entry//|/ }; do
      [ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null)" = installed ] && found=$name
    done
    [ -n "$found" ] || missing+=("$entry")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  local as_root=() names=()
  [ "$(id -u)" -eq 0 ] || as_root=(sudo)
  "${as_root[@]}" apt-get update -qq
  for entry in "${missing[@]}"; do
    found=
    for name in ${entry//|/ }; do
      # Others may name what the distribution does not have: only a version can be installed.
      [ -z "$found" ] && [ -n "$(apt-cache madison "$name" 2>/dev/null)" ] && found=$name
    done
    if [ -n "$found" ]; then names+=("$found"); else echo "not in this distribution: ${entry//|/ or }" >&2; fi
  done
  [ ${#names[@]} -eq 0 ] && return 0
  echo "installing: ${names[*]}"
  DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${names[@]}" >/dev/null
}

# build PRESET [TARGET …]: configures, with what build_options holds besides, and builds with all cores.
build() {
  local preset=$1
  shift
  cmake --preset "$preset" "${build_options[@]}" >/dev/null && cmake --build --preset "$preset" ${1:+--target "$@"}
}
