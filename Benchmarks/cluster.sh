# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034  # mount-helpers/benchmark sets and uses them
# mount-helpers/benchmark --cluster: a store in a cluster of three servers on this machine, and the page of it.

cluster_passphrase=plum-Xq7-vixen-04-tundra-1

# Three servers of etcd on loopback, whose data lie on the disk of $scratch.
start_servers() {
  local index peers='' ports
  etcd=$(command -v etcd || echo "$project/.build/etcd/usr/bin/etcd")
  [[ -x $etcd ]] || die "There is no etcd; mount-helpers/test sets it up."
  mapfile -t ports < <(free_ports 6)
  for index in 0 1 2; do peers+=${peers:+,}n$index=http://127.0.0.1:${ports[3 + index]}; done
  endpoints='' servers=()
  for index in 0 1 2; do
    "$etcd" --name "n$index" --data-dir "$scratch/etcd.$index" --log-level error \
      --quota-backend-bytes 8000000000 \
      --listen-client-urls "http://127.0.0.1:${ports[index]}" --advertise-client-urls "http://127.0.0.1:${ports[index]}" \
      --listen-peer-urls "http://127.0.0.1:${ports[3 + index]}" \
      --initial-advertise-peer-urls "http://127.0.0.1:${ports[3 + index]}" --initial-cluster "$peers" \
      </dev/null >"$scratch/etcd.$index.log" 2>&1 &
    servers+=($!)
    disown
    endpoints+=${endpoints:+,}127.0.0.1:${ports[index]}
  done
  for _ in {1..30}; do
    ETCDCTL_API=3 etcdctl --endpoints "$endpoints" endpoint health >"$scratch/etcd.health" 2>&1 && return
    sleep 1
  done
  die "The servers of etcd did not become ready: $(tail -n 3 "$scratch"/etcd.*.log)"
}

# Ports that no program has now.
free_ports() {
  python3 - "$1" <<'PYTHON'
import socket, sys
sockets = [socket.socket() for _ in range(int(sys.argv[1]))]
for s in sockets:
    s.bind(("127.0.0.1", 0))
for s in sockets:
    print(s.getsockname()[1])
PYTHON
}

stop_servers() {
  local server
  for server in "${servers[@]}"; do kill -KILL "$server" 2>/dev/null || true; done
  servers=()
}

# Makes a store, and a second device of it. Sets `store`.
make_store() {
  local code answer
  store=etcd://$endpoints/$1
  home_of "$scratch/one" "$keyhole"
  home_of "$scratch/two" "$keyhole"
  printf '%s\n%s\n' "$cluster_passphrase" "$cluster_passphrase" |
    "$scratch/one/keyhole" cluster init --store "$store" >"$scratch/cluster.log" 2>&1
  code=$(printf '%s\n' "$cluster_passphrase" | "$scratch/two/keyhole" cluster join --store "$store" 2>>"$scratch/cluster.log" | head -n 1) || true
  answer=$(printf '%s\n%s\n' "$cluster_passphrase" "$code" |
    "$scratch/one/keyhole" cluster approve --store "$store" 2>>"$scratch/cluster.log" | head -n 1)
  printf '%s\n%s\n' "$cluster_passphrase" "$answer" |
    "$scratch/two/keyhole" cluster join --store "$store" >>"$scratch/cluster.log" 2>&1
}

# Mounts `store` in a home, or that of another address.
mount_store() {
  # It says that the mount is locked.
  "$scratch/$1/keyhole" mount -o "store=${2:-$store}" "$scratch/$1/mount" 2>>"$scratch/cluster.log"
  printf '%s\n' "$cluster_passphrase" | "$scratch/$1/keyhole" unlock
}

# A process of etcdctl, beside one of keyhole, in turns.
measure_etcdctl() {
  local item=$scratch/one/mount/keychain/generic/benchmark/account-00001/value
  printf '%s\t%s\n' 'cat, Keyhole, setting of the cluster' "/bin/cat $scratch/one/mount/defaults/benchmark.few/key-00001" \
    'cat, Keyhole, secret of the cluster' "/bin/cat $item" \
    'keyhole get, secret of the cluster' "$scratch/one/keyhole get keychain/generic/benchmark/account-00001/value" \
    'etcdctl get' "/usr/bin/env ETCDCTL_API=3 etcdctl --endpoints $endpoints get /benchmark/read" \
    'etcdctl put' "/usr/bin/env ETCDCTL_API=3 etcdctl --endpoints $endpoints put /benchmark/put value" \
    >"$scratch/cluster.programs"
  : >"$scratch/cluster.files"
  "$measure" peers --programs "$scratch/cluster.programs" --files "$scratch/cluster.files" --rounds "$rounds" \
    --distributions "$scratch/distributions"
}

# With a store of its own for each number of settings: 100 in each suite.
measure_cluster_growth() {
  local count home
  for count in "${settings[@]}"; do
    say "measuring $count settings in the cluster"
    home=$scratch/growth.$count
    home_of "$home" "$keyhole"
    printf '%s\n%s\n' "$cluster_passphrase" "$cluster_passphrase" |
      "$home/keyhole" cluster init --store "etcd://$endpoints/growth-$count" >"$scratch/cluster.log" 2>&1
    printf '%s\n' "$cluster_passphrase" >"$home/passphrase"
    "$home/keyhole" mount -o "store=etcd://$endpoints/growth-$count" "$home/mount" 2>>"$scratch/cluster.log"
    "$home/keyhole" unlock <"$home/passphrase"
    "$measure" cluster-growth --keyhole "$home/keyhole" --ours "$home/mount" --scratch "$home" \
      --suites "$((count / 100))" --keys 100 --rounds "$rounds" --options "store=etcd://$endpoints/growth-$count" \
      --passphrase "$home/passphrase" --output "$scratch/growth" >&2
    "$home/keyhole" unmount "$home/mount"
    rm -rf --one-file-system -- "$home"
  done
}

measure_watchers() {
  local count
  for count in "${watchers[@]}"; do
    say "measuring $count watchers"
    prlimit --nofile="$(ulimit -Hn)" "$measure" watchers --endpoint "${endpoints%%,*}" \
      --servers "$(IFS=, && echo "${servers[*]}")" --count "$count" --output "$scratch/growth" >&2
  done
}

# Rows OPERATION with a column for each count, in the units of the operation.
cluster_table() {
  awk -F '\t' -v kind="$1" '$1 == kind {
    if (!($2 in seen)) { names[++n] = $2; seen[$2] }
    if (!($3 in counted)) { counts[++c] = $3; counted[$3] }
    at[$2, $3] = $4
  }
  function text(name, s) {
    if (name ~ /in bytes$/) return sprintf("%.0f", s)
    return s < 0.001 ? sprintf("%.1f µs", s * 1e6) : s < 10 ? sprintf("%.1f ms", s * 1e3) : sprintf("%.1f s", s)
  }
  END {
    head = "| operation |"; line = "|---|"
    for (j = 1; j <= c; j++) { head = head " " counts[j] " |"; line = line "---:|" }
    print head; print line
    for (i = 1; i <= n; i++) {
      row = "| " names[i] " |"
      for (j = 1; j <= c; j++) row = row " " ((names[i], counts[j]) in at ? text(names[i], at[names[i], counts[j]]) : "") " |"
      print row
    }
  }' "$scratch/growth"
}

# The targets of many settings, by the column of the most and that of the fewest.
growth_targets() {
  awk -F '\t' '$1 == "cluster" { at[$2, $3] = $4; if (!fewest || $3 < fewest) fewest = $3; if ($3 > most) most = $3 }
    function row(name, number, text, target, isMet) {
      printf "| %s | %s | %s | %s |\n", name, text, target, isMet ? "yes" : "NO"
    }
    END {
      print "| of " most " settings | measured | target | met |"; print "|---|---:|---:|---|"
      ready = at["mount", most] + at["keyhole unlock, with the passphrase'"'"'s key", most] + at["the first setting of the last suite", most]
      row("mount, unlock and the first setting", ready, sprintf("%.2f s", ready), "≤ 2 s", ready <= 2)
      bytes = at["memory of a setting that was read, in bytes", most]
      if (bytes) row("memory of a setting that was read", bytes, sprintf("%.0f bytes", bytes), "≤ 300 bytes", bytes <= 300)
      ratio = at["open+write+close", most] / at["open+write+close", fewest]
      row("a change, beside one with " fewest, ratio, sprintf("%.2f×", ratio), "≤ 1.5×", ratio <= 1.5)
    }' "$scratch/growth"
}

# --- A machine without a store: what the parts for clusters cost it

# The bytes of the executable's code and data by modules: the sum of the sizes of their symbols.
bytes_of_modules() {
  nm --print-size --defined-only "$keyhole" | awk -v pattern="$1" 'function value(hex,   i, n) {
      for (i = 1; i <= length(hex); i++) n = n * 16 + index("0123456789abcdef", substr(hex, i, 1)) - 1
      return n
    }
    NF == 4 && $4 ~ pattern && !($1 in seen) { seen[$1]; sum += value($2) } END { printf "%d\n", sum }'
}

# The median of so many starts of a command, in microseconds; the second command runs after each.
median_of_starts() {
  local before round
  for ((round = 0; round < rounds; round++)); do
    before=${EPOCHREALTIME/./}
    "${@:2}" >>"$scratch/cluster.log" 2>&1
    echo $((${EPOCHREALTIME/./} - before))
    $1
  done | sort -n | awk '{ at[NR] = $1 } END { print at[int((NR + 1) / 2)] }'
}

# A row: name, number, its unit, target.
target_row() {
  awk -v name="$1" -v number="$2" -v unit="$3" -v target="$4" 'BEGIN {
    printf "| %s | %.1f %s | ", name, number, unit
    if (target == "") print "| |"; else printf "≤ %s %s | %s |\n", target, unit, number <= target ? "yes" : "NO"
  }'
}

megabytes() { awk -v bytes="$1" 'BEGIN { print bytes / 1e6 }'; }

milliseconds() { awk -v us="$1" 'BEGIN { print us / 1e3 }'; }

unmount_files() { "$scratch/files/keyhole" unmount "$scratch/files/mount"; }

# The shared libraries that the process of a mount has loaded, one a line. It lets no other process of its user look.
libraries_of() { as_root cat "/proc/$("$1" status --json | jq .pid)/maps" | awk '$6 ~ /\.so/ { print $6 }' | sort -u; }

measure_single_machine() {
  local kept=$scratch/single without with loaded
  "$scratch/files/keyhole" mount -o keychain=vault "$scratch/files/mount"
  without=$(libraries_of "$scratch/files/keyhole")
  with=$(libraries_of "$scratch/one/keyhole")
  unmount_files
  cp -- "$keyhole" "$kept"
  strip "$kept"
  loaded=$(grep -c /libcurl <<<"$without") || true
  {
    echo '| a machine without a store | measured | target | met |'
    echo '|---|---:|---:|---|'
    target_row 'the executable, stripped' "$(megabytes "$(stat -c %s "$kept")")" MB ''
    target_row 'of it, the modules for clusters' \
      "$(megabytes "$(bytes_of_modules '^[$]s(7Cluster|14ClusterRecords|13ClusterAccess|10EtcdClient)')")" MB 4
    target_row 'of it, the hybrid encryption that they use' "$(megabytes "$(bytes_of_modules 'HPKE|XWing|MLKEM|mlkem')")" MB ''
    target_row "\`keyhole --version\`" "$(milliseconds "$(median_of_starts true "$scratch/files/keyhole" --version)")" ms 15
    target_row "\`keyhole mount\`, settings alone" \
      "$(milliseconds "$(median_of_starts unmount_files "$scratch/files/keyhole" mount -o keychain=none "$scratch/files/mount")")" ms ''
    target_row "\`keyhole mount\`, settings and a vault" \
      "$(milliseconds "$(median_of_starts unmount_files "$scratch/files/keyhole" mount -o keychain=vault "$scratch/files/mount")")" ms ''
    printf '| shared libraries of the mount'"'"'s process | %d | | |\n' "$(wc -l <<<"$without")"
    printf '| libcurl among them | %s | no | %s |\n' "$( ((loaded)) && echo yes || echo no)" "$( ((loaded)) && echo NO || echo yes)"
    printf '| further ones of a mount of a store, with libcurl | %d | | |\n' "$(comm -13 <(echo "$without") <(echo "$with") | wc -l)"
  } >"$scratch/tables/single"
  cat -- "$scratch/tables/single" >&2
  if grep -q '| NO |' "$scratch/tables/single" && ((${#check[@]})); then status=1; fi
}

# Runs a command with the processes of mounts on one processor, and with the servers on the others, where there are any.
with_servers_apart() {
  local process others result=0
  others=$(other_processors)
  if [[ -z $others ]]; then
    "$@"
    return
  fi
  for process in "${mounts[@]}"; do taskset -a -c -p "$processor" "$process" >/dev/null; done
  for process in "${servers[@]}"; do taskset -a -c -p "$others" "$process" >/dev/null; done
  taskset -c "$processor" "$@" || result=$?
  for process in "${mounts[@]}" "${servers[@]}"; do taskset -a -c -p "$processors" "$process" >/dev/null; done
  return "$result"
}

# The processors of this script but the first one, as taskset(1) lists them.
other_processors() {
  local range
  for range in ${processors//,/ }; do seq "${range%-*}" "${range#*-}"; done | tail -n +2 | paste -sd ,
}

measure_cluster() {
  start_servers
  make_store benchmark
  # With the server alone that the references ask: another one is the leader, or is not.
  mount_store one "etcd://${endpoints%%,*}/benchmark"
  mkdir -m 700 -- "$scratch/local"
  home_of "$scratch/files" "$keyhole"
  "$scratch/files/keyhole" mount -o keychain=none "$scratch/files/mount"
  mounts=("$("$scratch/one/keyhole" status --json | jq .pid)" "$("$scratch/files/keyhole" status --json | jq .pid)")
  show cluster with_servers_apart "$measure" cluster --ours "$scratch/one/mount" \
    --local "$scratch/files/mount" --endpoint "${endpoints%%,*}" --rounds "$rounds" "${check[@]}" || status=$?
  mount_store two
  show cluster-change "$measure" cluster-change --ours "$scratch/one/mount" --theirs "$scratch/two/mount" \
    --rounds "$rounds" "${check[@]}" || status=$?
  measure_etcdctl >&2
  unmount_files
  measure_single_machine
  local home
  for home in one two; do "$scratch/$home/keyhole" unmount "$scratch/$home/mount"; done
  measure_cluster_growth
  measure_watchers
  stop_servers
}

write_cluster_page() {
  local note='' table
  ((rounds > 10)) || note='**A quick run: its numbers say next to nothing.**'
  medians_table 'a process' >"$scratch/tables/cluster-processes"
  growth_targets >"$scratch/tables/growth-targets"
  for table in cluster watchers; do cluster_table "$table" >"$scratch/tables/growth-$table"; done
  mkdir -p -- "$scratch/plots" "$project/Documentation/benchmarks"
  growth_columns watchers >"$scratch/plots/growth-watchers.tsv"
  gnuplot -e "data='$scratch/plots'; out='$project/Documentation/benchmarks'; growth='watchers'" "$project/Benchmarks/plots.gnuplot"
  cat >"$scratch/CLUSTER.md" <<PAGE
# Benchmarks of a store in a cluster

Written by \`mount-helpers/benchmark --cluster\`; do not edit it. $note

| | |
|---|---|
| date | $(date -u +%F) |
| commit | $(git -C "$project" describe --always --dirty --exclude '*' 2>/dev/null || echo unknown) |
| machine | $(machine) |
| system | $(uname -sr), $(. /etc/os-release && echo "$PRETTY_NAME") |
| servers | three of $("$etcd" --version | head -n 1) on this machine, which Keyhole and the measuring program share; data on its disk |

The references are calls by the same client (\`EtcdClient\`) over one connection, without Keyhole's seals and checks, in turns with
ours, and to the same server, as one that is not the leader asks that for each call: of one small key, and, without a target, of as many keys, bytes and conditions as ours are made of (a head that answers for all other entries, and the value that is
replaced). All servers and the mounts run on the processors of one machine: there is no network between them, and they take each other's time. So reading and
writing are measured with one mount, with the measuring program and the mount on one processor and the servers on the others, as to wake a process on another one can
cost more than what is measured; a change is measured with two. A target that is missed says **NO**.

## A mount

$(cat "$scratch/tables/cluster")

## Two mounts

$(cat "$scratch/tables/cluster-change")

## Processes

$(cat "$scratch/tables/cluster-processes")

## Growth

So many settings, 100 in each suite. The mount is another process than the one that stored them. The memory of a setting is what the
mount's process has grown by from its start until all settings were read, divided by their number: with what it keeps for each file that
the kernel knows. It is measured of many settings only.

$(cat "$scratch/tables/growth-cluster")

$(cat "$scratch/tables/growth-targets")

## Watchers

So many clients, each with a connection to the same server, watch one prefix in which a key is put; 2,500 of them are in a process. The processor
time of the servers is that of all three.

![watchers](benchmarks/growth-watchers.svg)

$(cat "$scratch/tables/growth-watchers")

## A machine without a store

The same executable serves it. The modules for clusters are counted by the symbols of the executable before it is stripped; times are those of a
whole process, the medians of $rounds.

$(cat "$scratch/tables/single")
PAGE
  mv -- "$scratch/CLUSTER.md" "$cluster_page"
}
