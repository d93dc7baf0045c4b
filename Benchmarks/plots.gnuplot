# Draws the pictures of Documentation/BENCHMARKS.md: gnuplot -e "data='FOLDER'; out='FOLDER'; growth='keys items'" plots.gnuplot
# Those of BENCHMARKS-CLUSTER.md: the same with growth='watchers'.
#
# data: latency-1.tsv and so on (seconds, part of the calls), files.tsv and programs.tsv (name, median, p99, in seconds),
# growth-NAME.tsv of each NAME in growth (count, then a column of seconds for each operation, whose names are the first line).
set datafile separator "\t"
set style line 1 linewidth 2 linecolor rgb '#0b5fa5'
set style line 2 linewidth 2 linecolor rgb '#c2410c'
set style line 3 linewidth 2 linecolor rgb '#15803d'
set style line 4 linewidth 2 linecolor rgb '#7c3aed'
set style line 5 linewidth 2 linecolor rgb '#525252'
set style line 6 linewidth 2 linecolor rgb '#be185d'
set style line 7 linewidth 2 linecolor rgb '#a16207'
set style increment user
set border 3 linecolor rgb '#404040'
set tics nomirror
set grid linecolor rgb '#d0d0d0'

set terminal svg size 760,420 font 'sans-serif,13' background rgb 'white'

if (growth ne 'watchers') {
  set key right bottom reverse Left

  set output out.'/latency.svg'
  set title 'open+read+close: how many of the calls take at most so long'
  set xlabel 'microseconds'
  set ylabel '% of the calls'
  set logscale x
  set xrange [5:200]
  set yrange [0:100]
  plot data.'/latency-1.tsv' using ($2*1e6):($1*100) with lines title 'setting', \
       data.'/latency-2.tsv' using ($2*1e6):($1*100) with lines title 'secret', \
       data.'/latency-3.tsv' using ($2*1e6):($1*100) with lines title 'hello\_ll, an example in C of libfuse'
  unset logscale x

  set key off
  set style fill solid
  set boxwidth 0.5
  set yrange [*:*] reverse
  unset ylabel
  set grid noytics
  set lmargin 28
  set xrange [0:*]

  set output out.'/files.svg'
  set title 'open+read+close of one small file, median'
  set xlabel 'microseconds'
  plot data.'/files.tsv' using ($2*1e6/2):0:($2*1e6/2):(0.3):ytic(1) with boxxyerror linestyle 1, \
       '' using ($2*1e6):0:(sprintf(' %.1f', $2*1e6)) with labels left

  set output out.'/programs.svg'
  set title 'a command that prints one value, start and end included, median'
  set xlabel 'milliseconds'
  plot data.'/programs.tsv' using ($2*1e3/2):0:($2*1e3/2):(0.3):ytic(1) with boxxyerror linestyle 1, \
       '' using ($2*1e3):0:(sprintf(' %.1f', $2*1e3)) with labels left
}

set lmargin -1
if (growth eq 'watchers') { set key inside left top } else { set key outside right top }
set yrange [*:*] noreverse
set grid ytics
set xrange [*:*]
set logscale xy
set format x '%.0s%c'
set ylabel 'milliseconds'
do for [store in growth] {
  set output out.'/growth-'.store.'.svg'
  set title store eq 'keys' ? 'a suite of so many keys' : store eq 'items' ? 'a vault of so many items' : \
    'a change of a key that so many clients watch'
  set xlabel store
  file = data.'/growth-'.store.'.tsv'
  stats file using 1 skip 1 nooutput
  plot for [column=2:STATS_columns] file using 1:(column(column)*1e3) with linespoints linestyle column-1 \
    title columnhead(column)
}
