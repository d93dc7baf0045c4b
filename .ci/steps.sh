# shellcheck shell=bash
# The steps that .ci/run and Scripts/check share. To be sourced, in the project's folder.

timings=()

# The seconds of processor time that all commands up to now took.
processor_seconds() { awk -v ticks="$(getconf CLK_TCK)" '{ print int(($16 + $17) / ticks) }' "/proc/$$/stat"; }

# Runs one step under its name and remembers how long it took. The first that fails ends the run.
step() {
  local name=$1 began=$SECONDS processor
  processor=$(processor_seconds)
  shift
  printf '\n### %s\n' "$name"
  "$@" || {
    printf '\n"%s" failed after %d s\n' "$name" $((SECONDS - began)) >&2
    exit 1
  }
  timings+=("$(printf '%5d s, %5d s of processor time  %s' $((SECONDS - began)) $(($(processor_seconds) - processor)) "$name")")
}

format() {
  local folder present=()
  for folder in Sources Tests Benchmarks Examples Package.swift; do
    [[ ! -e $folder ]] || present+=("$folder")
  done
  swift format lint --strict --parallel --recursive "${present[@]}"
}

scripts() {
  local file files=()
  while IFS= read -r -d '' file; do
    if [[ -f $file ]] && head -n 1 -- "$file" | grep -qE '^#(!.*\b(ba)?sh$| shellcheck shell=)'; then files+=("$file"); fi
  done < <(git ls-files -z -- .ci mount-helpers Scripts Examples Tests Benchmarks)
  shellcheck --external-sources -- "${files[@]}"
}

print_times() {
  printf '\n### time\n'
  printf '%s\n' "${timings[@]}"
  printf '%5d s  all\n\n' "$SECONDS"
}
