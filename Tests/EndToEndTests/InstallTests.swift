import Testing

/// `mount-helpers/install` and `uninstall`.
@Suite(.timeLimit(.minutes(1))) struct InstallTests {
  @Test func whatIsInstalledIsTakenAwayAgain() async throws {
    try await withWorld { world in
      try world.check(
        """
        \(Products.helpers)/install --user --binary \(Products.keyhole) > /dev/null; cd "$HOME/.local"
        bin/keyhole --version > /dev/null && ls bin; ls "$XDG_CONFIG_HOME/systemd/user"; ls sbin 2> /dev/null
        grep -c "ExecStart=$HOME/.local/bin/keyhole" "$XDG_CONFIG_HOME/systemd/user/keyhole.service"
        bash -n share/bash-completion/completions/keyhole
        \(Products.helpers)/uninstall --user > /dev/null; find "$HOME" "$XDG_CONFIG_HOME" -type f -o -type l
        """,
        prints: """
          bazel-credential-keyhole
          cargo-credential-keyhole
          docker-credential-keyhole
          git-credential-keyhole
          keyhole
          keyhole-askpass
          terraform-credentials-keyhole
          keyhole-credentials.service
          keyhole-credentials.socket
          keyhole.service
          1

          """)
      try world.check("\(Products.helpers)/uninstall --user 2> /dev/null || echo $?", prints: "1\n")
    }
  }

  @Test func thePackagesFilesAreWhereDebianWantsThem() async throws {
    try await withWorld { world in
      try world.check(
        """
        \(Products.helpers)/install --prefix /usr --destination "$OUT/root" --binary \(Products.keyhole) > /dev/null
        cd "$OUT/root" && find usr -not -type d -not -path '*/man/*' -not -path '*/examples/*' | LC_ALL=C sort
        readlink usr/sbin/mount.fuse.keyhole
        """,
        prints: """
          usr/bin/bazel-credential-keyhole
          usr/bin/cargo-credential-keyhole
          usr/bin/docker-credential-keyhole
          usr/bin/git-credential-keyhole
          usr/bin/keyhole
          usr/bin/keyhole-askpass
          usr/bin/terraform-credentials-keyhole
          usr/lib/systemd/system/keyhole@.service
          usr/lib/systemd/user/keyhole-credentials.service
          usr/lib/systemd/user/keyhole-credentials.socket
          usr/lib/systemd/user/keyhole.service
          usr/sbin/mount.fuse.keyhole
          usr/sbin/mount.keyhole
          usr/sbin/umount.fuse.keyhole
          usr/sbin/umount.keyhole
          usr/share/bash-completion/completions/keyhole
          usr/share/doc/keyhole/CHANGELOG.md
          usr/share/doc/keyhole/Documentation/BACKUP.md
          usr/share/doc/keyhole/Documentation/CLUSTER.md
          usr/share/doc/keyhole/Documentation/CREDENTIALS.md
          usr/share/doc/keyhole/Documentation/ERRORS.md
          usr/share/doc/keyhole/Documentation/FORMATS.md
          usr/share/doc/keyhole/Documentation/GUIDE.md
          usr/share/doc/keyhole/Documentation/README.md
          usr/share/doc/keyhole/Documentation/RECIPES.md
          usr/share/doc/keyhole/Documentation/SECURITY.md
          usr/share/doc/keyhole/Documentation/SYMLINKS.md
          usr/share/doc/keyhole/Documentation/TROUBLESHOOTING.md
          usr/share/doc/keyhole/LICENSE
          usr/share/doc/keyhole/README.md
          usr/share/doc/keyhole/SECURITY.md
          usr/share/fish/vendor_completions.d/keyhole.fish
          usr/share/nvim/site/plugin/keyhole.vim
          usr/share/vim/vimfiles/plugin/keyhole.vim
          usr/share/zsh/site-functions/_keyhole
          mount.keyhole

          """)
    }
  }
}
