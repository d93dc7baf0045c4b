# shellcheck shell=bash
# shellcheck disable=SC2154  # mount-helpers/benchmark sets them
# The parts of mount-helpers/benchmark --page: what only the page shows, and the page itself. It has set up the rest.

# --- Other programs and file systems, in turns with Keyhole

# A folder that gocryptfs shows, with a file in it.
start_gocryptfs() {
  printf 'pw\n' >"$scratch/gocryptfs.password"
  mkdir -m 700 -- "$scratch"/{encrypted,decrypted}
  gocryptfs -init -q -nosyslog -passfile "$scratch/gocryptfs.password" "$scratch/encrypted"
  taskset -c "$processor" gocryptfs -q -nosyslog -passfile "$scratch/gocryptfs.password" "$scratch/encrypted" \
    "$scratch/decrypted" >"$scratch/gocryptfs.log" 2>&1
  echo 'Hello World!' >"$scratch/decrypted/value"
}

# A store of pass with one password, of a key without a passphrase.
start_pass() {
  export GNUPGHOME=$scratch/gnupg PASSWORD_STORE_DIR=$scratch/pass
  mkdir -m 700 -- "$GNUPGHOME"
  # The agent that it starts stays on the processor.
  taskset -c "$processor" gpg --batch --quiet --passphrase '' --quick-gen-key benchmark >"$scratch/gpg.log" 2>&1
  pass init benchmark >/dev/null
  echo 'Hello World!' | pass insert --multiline benchmark >/dev/null
}

measure_peers() {
  local data=$XDG_DATA_HOME key=defaults/benchmark.few/key-00002 item=keychain/generic/benchmark/account-00001/value
  start_gocryptfs
  start_pass
  taskset -a -c -p "$processor" "$("$keyhole" status --json | jq .pid)" >/dev/null
  printf '%s\t%s\n' 'Keyhole, setting' "$scratch/mount/$key" 'Keyhole, secret' "$scratch/mount/$item" \
    hello_ll "$scratch/hello/hello" passthrough_ll "$scratch/passthrough/written" \
    gocryptfs "$scratch/decrypted/value" tmpfs "$memory/files/key-00002" >"$scratch/files.list"
  printf '%s\t%s\n' 'cat, file of tmpfs' "/bin/cat $memory/files/key-00002" \
    'cat, Keyhole, setting' "/bin/cat $scratch/mount/$key" 'cat, Keyhole, secret' "/bin/cat $scratch/mount/$item" \
    'cat, gocryptfs' "/bin/cat $scratch/decrypted/value" \
    'empty Swift program' "$project/.build/release/read-file-benchmark $scratch/mount/$key" \
    'empty Swift program, linked as keyhole' "$project/.build/release/foundation-benchmark $scratch/mount/$key" \
    'keyhole get, setting' "$keyhole get $key" 'keyhole get, secret' "$keyhole get $item" \
    'secret-tool lookup' '/usr/bin/secret-tool lookup service benchmark' \
    'pass show' '/usr/bin/pass show benchmark' \
    'true' /bin/true 'keyhole run, true' "$keyhole run -- /bin/true" \
    'keyhole run with a secret, true' "$keyhole run --env SECRET=$item -- /bin/true" >"$scratch/programs.list"
  # shellcheck disable=SC2016  # for the other shell
  XDG_DATA_HOME=$scratch/peers taskset -c "$processor" dbus-run-session -- sh -c '
    printf pw | gnome-keyring-daemon --unlock --components=secrets >"$0" 2>&1
    echo "Hello World!" | secret-tool store --label=benchmark service benchmark
    XDG_DATA_HOME=$1; shift; exec "$@" 2>&3' \
    "$scratch/keyring.log" "$data" "$measure" peers --programs "$scratch/programs.list" \
    --files "$scratch/files.list" --rounds "$rounds" --distributions "$scratch/distributions" 3>&2 2>/dev/null
  taskset -a -c -p "$processors" "$("$keyhole" status --json | jq .pid)" >/dev/null
  gpgconf --kill all
  unmount_below "$scratch/decrypted"
}

# --- Growth

measure_growth() {
  local count
  for count in "${counts[@]}"; do
    say "measuring growth: $count keys and items"
    measure_growth_of all "$count"
  done
  say "measuring growth: one key of suites of ${counts[*]} keys"
  measure_growth_of turns "${counts[*]}"
  # Property lists are not for as many keys.
  for count in "${item_counts[@]}"; do
    say "measuring growth: $count items"
    measure_growth_of items "$count"
  done
}

# In a home of its own.
measure_growth_of() {
  local stores=$1 count=$2 home=$scratch/growth.$1.${2%% *}
  home_of "$home" "$keyhole"
  # The vault is chosen with the first mount.
  "$home/keyhole" mount -o keychain=vault "$home/mount"
  "$home/keyhole" unmount "$home/mount"
  "$measure" growth --keyhole "$home/keyhole" --ours "$home/mount" --scratch "$home" --config "$home/.config" \
    --count "$count" --rounds "$rounds" --output "$scratch/growth" --stores "$stores" >&2
  rm -rf --one-file-system -- "$home"
}

# Columns of a store for gnuplot and, with the last count beside the first one, for the page.
growth_columns() {
  awk -F '\t' -v store="$1" '$1 == store && $2 !~ /^memory/ {
    if (!($2 in seen)) { names[++n] = $2; seen[$2] }
    if (!($3 in counted)) { counts[++c] = $3; counted[$3] }
    at[$2, $3] = $4
  } END {
    line = "count"; for (i = 1; i <= n; i++) line = line "\t" names[i]; print line
    for (j = 1; j <= c; j++) {
      line = counts[j]; for (i = 1; i <= n; i++) line = line "\t" at[names[i], counts[j]]; print line
    }
  }' "$scratch/growth"
}

# The last count beside the first one, and beside the target: what an operation costs may grow by half, a mount takes a second
# at most, and a listed entry takes so many bytes of memory.
growth_table() {
  awk -F '\t' -v store="$1" -v bytes="$2" '$1 == store {
    if (!($2 in seen)) { names[++n] = $2; seen[$2] }
    if (!($3 in counted)) { counts[++c] = $3; counted[$3] }
    at[$2, $3] = $4
  }
  function text(s) { return s < 0.001 ? sprintf("%.1f µs", s * 1e6) : sprintf("%.1f ms", s * 1e3) }
  function shown(name, value) { return name ~ /^memory/ ? sprintf("%.0f bytes", value) : text(value) }
  END {
    head = "| operation |"; line = "|---|"
    for (j = 1; j <= c; j++) { head = head " " counts[j] " |"; line = line "---:|" }
    print head " last to first | target | met |"; print line "---:|---:|---|"
    for (i = 1; i <= n; i++) {
      row = "| " names[i] " |"
      for (j = 1; j <= c; j++) row = row " " shown(names[i], at[names[i], counts[j]]) " |"
      last = at[names[i], counts[c]]; ratio = last / at[names[i], counts[1]]
      if (names[i] ~ /^memory/) { ratio_text = ""; target = "≤ " bytes " bytes"; met = last <= bytes }
      else if (names[i] == "mount") { ratio_text = sprintf("%.1f", ratio); target = "≤ 1 s"; met = last <= 1 }
      else { ratio_text = sprintf("%.1f", ratio); target = "≤ 1.5×"; met = ratio <= 1.5 }
      printf "%s %s | %s | %s |\n", row, ratio_text, target, met ? "yes" : "NO"
    }
  }' "$scratch/growth"
}

# --- The page

# The percentiles of a side of a row: part, seconds.
percentiles() {
  awk -F '\t' -v OFS='\t' -v row="$1" -v side="$2" '$1 == row && $2 == side { print $3, $4 }' "$scratch/distributions"
}

# Name, median and p99 of the rows that begin so.
medians() {
  awk -F '\t' -v OFS='\t' -v row="$1: " 'index($1, row) == 1 {
    name = substr($1, length(row) + 1)
    if (!seen[name]++) names[++n] = name
    if ($3 == "0.50") median[name] = $4
    if ($3 == "0.99") p99[name] = $4
  } END { for (i = 1; i <= n; i++) print names[i], median[names[i]], p99[names[i]] }' "$scratch/distributions"
}

# The same for the page: the name, and both times.
medians_table() {
  printf '| %s | median | p99 |\n|---|---:|---:|\n' "$1"
  medians "$1" | awk -F '\t' '
    function text(s) { return s < 0.001 ? sprintf("%.1f µs", s * 1e6) : sprintf("%.1f ms", s * 1e3) }
    { printf "| %s | %s | %s |\n", $1, text($2), text($3) }'
}

# The cost of a start of `keyhole run` over the plain one, in the same run.
run_cost() {
  medians 'a process' | awk -F '\t' '{ at[$1] = $2 } END {
    cost = at["keyhole run, true"] - at["true"]
    printf "`keyhole run -- true` costs %.1f ms over `true`, and %.1f ms with a secret; the target is 10 ms: %s.\n",
      cost * 1e3, (at["keyhole run with a secret, true"] - at["true"]) * 1e3, cost <= 0.010 ? "met" : "**NO**"
  }'
}

# `keyhole get` beside the Swift programs that do nothing else, in the same run.
get_cost() {
  medians 'a process' | awk -F '\t' '{ at[$1] = $2 } END {
    linked = at["empty Swift program, linked as keyhole"]; empty = at["empty Swift program"]
    setting = at["keyhole get, setting"]; secret = at["keyhole get, secret"]
    printf "`keyhole get` takes %.2f times as long for a setting, and %.2f times for a secret, as the empty program that is linked in\n", \
      setting / linked, secret / linked
    printf "the same way; the target is 1.5 times: %s and %s. Beside the program without libraries it takes %.1f and %.1f times as long.\n", \
      setting / linked <= 1.5 ? "met" : "**NO**", secret / linked <= 1.5 ? "met" : "**NO**", setting / empty, secret / empty
  }'
}

draw() {
  local data=$scratch/plots store
  mkdir -p -- "$data" "$page/benchmarks"
  percentiles 'open+read+close, setting' Keyhole >"$data/latency-1.tsv"
  percentiles 'open+read+close, secret' Keyhole >"$data/latency-2.tsv"
  percentiles 'open+read+close, secret' hello_ll >"$data/latency-3.tsv"
  medians open+read+close >"$data/files.tsv"
  medians 'a process' >"$data/programs.tsv"
  for store in keys items; do growth_columns "$store" >"$data/growth-$store.tsv"; done
  gnuplot -e "data='$data'; out='$page/benchmarks'; growth='keys items'" "$project/Benchmarks/plots.gnuplot"
}

machine() {
  local processor_name
  processor_name=$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)
  echo "$(nproc) processors (${processor_name:-unknown}), $(awk '/MemTotal/ { printf "%.0f GiB", $2 / 1048576 }' /proc/meminfo) of memory"
}

write_page() {
  local commit distribution versions note=''
  commit=$(git -C "$project" describe --always --dirty --exclude '*' 2>/dev/null || echo unknown)
  distribution=$(. /etc/os-release && echo "$PRETTY_NAME")
  versions="libfuse $(pkg-config --modversion fuse3), $(swift --version 2>/dev/null | grep -o 'Swift version [0-9.]*')"
  versions+=", gocryptfs $(gocryptfs -version | sed 's/;.*//;s/gocryptfs //'), pass $(pass version | grep -o 'v[0-9.]*')"
  versions+=", libsecret $(pkg-config --modversion libsecret-1)"
  ((rounds > 10)) || note='**A quick run: its numbers say next to nothing.**'
  draw
  # Made before the page, so that an error ends this.
  medians_table open+read+close >"$scratch/tables/medians"
  medians_table 'a process' >"$scratch/tables/processes"
  run_cost >"$scratch/tables/run-cost"
  get_cost >"$scratch/tables/get-cost"
  [[ -e $scratch/tables/service ]] || echo 'Not measured in a quick run.' >"$scratch/tables/service"
  growth_table keys 300 >"$scratch/tables/growth-keys"
  growth_table items 500 >"$scratch/tables/growth-items"
  cat >"$scratch/BENCHMARKS.md" <<PAGE
# Benchmarks

Written by \`mount-helpers/benchmark --page\`; do not edit it. To repeat it: install nothing but Swift, run that command on a
machine that does nothing else (about half an hour, and root for the packages), and read this file. $note

| | |
|---|---|
| date | $(date -u +%F) |
| commit | $commit |
| machine | $(machine) |
| system | $(uname -sr), $distribution |
| versions | $versions |
| stores | $keys keys in one suite, $items items in the vault, on a disk of the machine; what is compared with tmpfs lies there |

All sides of a row are measured in turns, in one run. In the rows against libfuse's examples and in the two comparisons with
other programs everything runs on one processor: to wake a process on another one can cost five times what a file system
does. A target that is missed says **NO**.

## Files

![open+read+close: distribution](benchmarks/latency.svg)

$(cat "$scratch/tables/files")

## Beside other file systems

![open+read+close: medians](benchmarks/files.svg)

$(cat "$scratch/tables/medians")

## Beside other programs

![commands: medians](benchmarks/programs.svg)

\`keyhole get\` is the release build of this machine. The empty Swift programs are linked with the same options and do nothing but
copy a file to their output; the second one is linked with the libraries of \`keyhole\` too: GRDB, and so Foundation and SQLite, and libfuse. What the start of a command consists of, and what was tried, is in [ARCHITECTURE.md](ARCHITECTURE.md#the-start-of-a-command).

$(cat "$scratch/tables/processes")

$(cat "$scratch/tables/get-cost")

$(cat "$scratch/tables/run-cost")

## Growth

A listing is divided by its entries, an import by its items. The memory is what the mount holds more than before, eight seconds
after the listings.

![keys](benchmarks/growth-keys.svg)

$(cat "$scratch/tables/growth-keys")

![items](benchmarks/growth-items.svg)

$(cat "$scratch/tables/growth-items")

## Many at once

$(cat "$scratch/tables/storm")

## The desktop's keyring

The calls are those on the session bus.

$(cat "$scratch/tables/keyring")

## The Secret Service

\`keyhole service\` and gnome-keyring with 5,000 items each, on buses of the same program, by one client in turns: a search that
finds one item, its secret in an encrypted session, and a further item. From the medians those of a Ping of the same service are
subtracted. gnome-keyring's keyring has no password, so it is stored without encryption, which is its faster case.

$(cat "$scratch/tables/service")

## Property wrappers

Beside Foundation's \`UserDefaults\` in the same program.

\`\`\`
$(cat "$scratch/tables/wrappers")
\`\`\`
PAGE
  mv -- "$scratch/BENCHMARKS.md" "$page/BENCHMARKS.md"
}
