import Glibc
import Testing

/// Section 6: the tools work unchanged, on values of each kind, and say and leave nothing.
@Suite(.timeLimit(.minutes(3))) struct ToolTests {
  /// A tool at work on `$F` in its folder. `$OUT/old` and `$OUT/new` hold the value and another one; `$E` is the edit
  /// from the one to the other.
  struct Use: Sendable {
    let name: String
    let script: String

    init(_ name: String, _ script: String) {
      self.name = name
      self.script = script
    }
  }

  /// Programs that only read, or leave the value as it is: each prints nothing if it got the whole value.
  static let readers = [
    Use("cat", "cat $F | cmp - $OUT/old; cat < $F | cmp - $OUT/old; cat $F $F > $OUT/twice"),
    Use("head", "head -c 1000 $F | cmp - $OUT/old; head -n 100 $F | cmp - $OUT/old"),
    Use("tail", "tail -c +1 $F | cmp - $OUT/old; tail -n 100 $F | cmp - $OUT/old; tail -c 2 $F > $OUT/end"),
    Use("wc", "[ \"$(wc < $F)\" = \"$(wc < $OUT/old)\" ]; [ \"$(wc -c < $F)\" = \"$(wc -c < $OUT/old)\" ]"),
    Use("dd out", "dd if=$F status=none | cmp - $OUT/old; dd if=$F bs=1 status=none | cmp - $OUT/old"),
    Use("dd direct", "dd if=$F iflag=direct bs=4096 status=none | cmp - $OUT/old"),
    Use("tee out", "tee $OUT/copy < $F | cmp - $OUT/old; cmp $OUT/copy $OUT/old"),
    Use("cp out", "cp $F $OUT/copy; cmp $OUT/copy $OUT/old"),
    Use("cp without reflink", "cp --reflink=never --sparse=always $F $OUT/copy; cmp $OUT/copy $OUT/old"),
    Use("install out", "install -m 600 $F $OUT/copy; cmp $OUT/copy $OUT/old"),
    Use("sed out", "sed '' $F | cmp - $OUT/old"),
    Use("perl out", "perl -pe 1 $F | cmp - $OUT/old; perl -0777 -ne 'print length' $F > $OUT/length"),
    Use("stat", "[ \"$(stat -c '%s %F' $F)\" = \"$(stat -c '%s %F' $OUT/old)\" ]"),
    Use("touch", "touch -d @1000000000 $F; [ $(stat -c %Y $F) = 1000000000 ]; touch $F"),
    Use(
      "find", "touch -d @1000000000 $OUT/then; [ \"$(find . -newer $OUT/then -name $F -size -9)\" = ./$F ]"),
    Use(
      "find -delete of nothing",
      "find . -name missing -delete; find . -type f -print0 | xargs -0 ls > $OUT/ls"),
    Use("grep", "[ \"$(grep -ac '' $F)\" = \"$(grep -ac '' $OUT/old)\" ]; grep -rqa \"${E:2:2}\" ."),
    Use("rg", "rg -aq --mmap \"${E:2:2}\" $F; rg -aq --no-mmap \"${E:2:2}\" $F; rg -aq \"${E:2:2}\" ."),
    Use(
      "diff",
      "diff $F $OUT/old; cp -r . $OUT/copies; diff -r . $OUT/copies; rm -r $OUT/copies"),
    Use("cmp", "cmp $F $OUT/old"),
    Use("du", "[ $(du -b $F | cut -f1) = $(stat -c %s $OUT/old) ]; du -ah . > $OUT/du"),
    Use("df", "df $F > $OUT/df; df -i . > $OUT/df"),
    Use("tree", "tree -as . | grep -q $F"),
    Use("sort", "sort -s $F | cmp - <(sort -s $OUT/old)"),
    Use("flock", "flock $F true; flock -s $F cat $F | cmp - $OUT/old; ! flock $F flock -n $F true"),
    Use(
      "git diff",
      "git diff --no-index --exit-code $F $OUT/old; [ $(git hash-object $F) = $(git hash-object $OUT/old) ]"),
    Use("findmnt", "[ $(findmnt -n -o TARGET -T $F) = $MOUNT ]; mount | grep -q \" $MOUNT \""),
    Use("checksums", "[ \"$(sha256sum < $F)\" = \"$(sha256sum < $OUT/old)\" ]"),
    Use("split and xxd", "xxd $F | cmp - <(xxd $OUT/old); od -c $F | cmp - <(od -c $OUT/old)"),
    Use(
      "chmod and chown", "chmod 644 $F; chmod u+x $F; chown \"$(id -u):$(id -g)\" $F; chgrp \"$(id -g)\" $F"),
    Use("truncate to its size", "truncate -s $(stat -c %s $F) $F; truncate -r $F $F; truncate -s +0 $F"),
    Use("mv there and back", "mv $F $F.moved~; mv $F.moved~ $F"),
    Use("cp -a out and in", "cp -a $F $OUT/copy; cmp $OUT/copy $OUT/old; cp -a $OUT/copy $F"),
    Use("rsync out and in", "rsync -aX $F $OUT/copy; cmp $OUT/copy $OUT/old; rsync -aX $OUT/copy $F"),
    Use(
      "tar out and in",
      "tar --xattrs --xattrs-include='*' -cf $OUT/tar $F; tar -xOf $OUT/tar | cmp - $OUT/old; tar --xattrs --xattrs-include='*' -xf $OUT/tar"
    ),
    Use("sponge of itself", "cat $F | sponge $F; sponge < $F | cmp - $OUT/old"),
    Use("patch of nothing", "patch -s --dry-run $F < <(diff -au --label a --label b $OUT/old $OUT/new)"),
  ]

  /// Programs that make the new value from the old one.
  static let writers = [
    Use("redirection", "cat $OUT/new > $F"),
    Use("dash", "dash -c 'cat $OUT/new > $F'"),
    Use("printf", "[ $F = value ] && cat $OUT/new > $F || printf '%s\\n' \"$(cat $OUT/new)\" > $F"),
    Use("echo", "[ $F = value ] && cat $OUT/new > $F || echo \"$(cat $OUT/new)\" > $F"),
    Use("tee", "tee $F < $OUT/new | cmp - $OUT/new"),
    Use("dd", "dd of=$F if=$OUT/new status=none"),
    Use("dd in pieces", "dd of=$F if=$OUT/new bs=3 status=none"),
    Use("dd without truncation", "dd of=$F if=$OUT/new conv=notrunc,fsync status=none"),
    Use("cp", "cp $OUT/new $F"),
    Use("cp -f --remove-destination", "cp -f --remove-destination $OUT/new $F"),
    Use("cp -a", "cp -a $F $OUT/copy; cat $OUT/new > $OUT/copy; cp -a $OUT/copy $F"),
    Use("cp --backup", "cp --backup=simple $OUT/new $F; cmp $F~ $OUT/old; rm $F~"),
    Use("mv from outside", "cp $OUT/new $OUT/copy; mv $OUT/copy $F"),
    Use("mv of scratch", "cp $OUT/new .new; mv .new $F"),
    Use("mv --backup", "cp $OUT/new .new; mv --backup=simple .new $F; rm $F~"),
    Use("install", "install -m 600 $OUT/new $F"),
    Use("install -C", "install -C -m 600 $OUT/new $F"),
    Use("sed -i", "sed -i -e \"$E\" $F"),
    Use("sed -i with a backup", "sed -i~ -e \"$E\" $F; cmp $F~ $OUT/old; rm $F~"),
    Use("perl -i", "perl -pi -e \"$E\" $F"),
    Use("perl -i with a backup", "perl -i~ -pe \"$E\" $F; cmp $F~ $OUT/old; rm $F~"),
    Use("sponge", "sed -e \"$E\" $F | sponge $F"),
    Use(
      "patch",
      "diff -au --label a --label b $OUT/old $OUT/new > $OUT/diff || true; patch -s $F < $OUT/diff; rm -f $F.orig"
    ),
    Use(
      "patch -R and again",
      "diff -au --label a --label b $OUT/old $OUT/new > $OUT/diff || true; patch -s $F < $OUT/diff; patch -sR $F < $OUT/diff; patch -s $F < $OUT/diff; rm -f $F.orig"
    ),
    Use("rsync", "rsync -I $OUT/new $F"),
    Use(
      "rsync -aX",
      "mkdir $OUT/from; rsync -aX $F $OUT/from/$F; cat $OUT/new > $OUT/from/$F; rsync -aXI $OUT/from/$F $F; rm -r $OUT/from"
    ),
    Use("rsync --inplace", "rsync --inplace --no-whole-file -I $OUT/new $F"),
    Use("rsync with a backup", "rsync -I --backup $OUT/new $F; cmp $F~ $OUT/old; rm $F~"),
    Use(
      "tar",
      "mkdir $OUT/from; cp -a $F $OUT/from/$F; cat $OUT/new > $OUT/from/$F; tar -C $OUT/from --xattrs --xattrs-include='*' -cf - $F | tar --xattrs --xattrs-include='*' -xf -; rm -r $OUT/from"
    ),
    Use(
      "tar --overwrite",
      "mkdir $OUT/from; cp $OUT/new $OUT/from/$F; tar -C $OUT/from -cf - $F | tar --overwrite -xf -; rm -r $OUT/from"
    ),
    Use("sort -o", "cp $OUT/new $F; [ $NAME = binary ] || sort -s -k 9 -o $F $F"),
    Use(
      "git apply",
      "cp $OUT/old $OUT/$F; (cd $OUT; git diff --no-index --binary --no-color $F new > diff || true; sed -i \"s|b/new|b/$F|g\" diff); GIT_CEILING_DIRECTORIES=$MOUNT git apply --unsafe-paths $OUT/diff; rm -f $OUT/$F"
    ),
    Use(
      "read, rewind, write, cut",
      "perl -e 'open F, \"+<\", $ARGV[0]; local $/; $_ = <F>; eval $ARGV[1]; seek F, 0, 0; print F; truncate F, tell F; close F or die' $F \"$E\""
    ),
    Use("under a lock", "flock $F cp $OUT/new $F"),
  ]

  @Test(arguments: ToolSubject.all.map(\.name))
  func readersGetTheWholeValueAndChangeNothing(name: String) async throws {
    try await tryAll(Self.readers, on: name) { $0.old }
  }

  @Test(arguments: ToolSubject.all.map(\.name))
  func writersChangeTheValueAlone(name: String) async throws {
    try await tryAll(Self.writers, on: name) { $0.new }
  }

  private func tryAll(
    _ uses: [Use], on name: String, leaving content: (ToolSubject) -> String
  ) async throws {
    let subject = try #require(ToolSubject.all.first { $0.name == name })
    try await withKeyhole("history=0") { keyhole in
      try subject.prepare(keyhole)
      let before = try subject.picture(keyhole)
      for use in uses {
        try subject.reset(keyhole)
        let output = try keyhole.sh(
          """
          set -e; set -o pipefail; cd \(subject.folder); F=\(subject.file); E='\(subject.edit)'; NAME=\(name); export F
          \(use.script)
          """)
        #expect(output == Output(status: 0, bytes: [], error: ""), "\(use.name) on \(name)")
        #expect(try keyhole.cat(subject.path) == content(subject), "\(use.name) on \(name)")
        #expect(try subject.picture(keyhole) == before, "\(use.name) on \(name)")
        try keyhole.world.check("rm -rf \"$OUT\"/copy \"$OUT\"/copies")
      }
      try keyhole.remount()
      #expect(try keyhole.cat(subject.path) == content(subject))
    }
  }
}
