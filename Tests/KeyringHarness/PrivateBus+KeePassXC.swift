import Glibc

extension PrivateBus {
  /// Whether KeePassXC is installed.
  public static var hasKeePassXC: Bool {
    unsafe access("/usr/bin/keepassxc", X_OK) == 0 && access("/usr/bin/keepassxc-cli", X_OK) == 0
  }

  /// Starts KeePassXC's service, without a screen, on a new database, and returns when that is open.
  ///
  /// The database says itself which of its groups the service shows; nothing is asked in a window.
  public func startKeePassXC() throws {
    let database = """
      <?xml version="1.0" encoding="UTF-8"?>
      <KeePassFile><Meta><DatabaseName>db</DatabaseName><RecycleBinEnabled>False</RecycleBinEnabled>
      <CustomData><Item><Key>FDO_SECRETS_EXPOSED_GROUP</Key>
      <Value>{01010101-0101-0101-0101-010101010101}</Value></Item></CustomData></Meta>
      <Root><Group><UUID>AQEBAQEBAQEBAQEBAQEBAQ==</UUID><Name>Root</Name></Group></Root></KeePassFile>
      """
    let settings = """
      [General]
      ConfigVersion=2
      [FdoSecrets]
      Enabled=true
      ShowNotification=false
      ConfirmDeleteItem=false
      ConfirmAccessItem=false
      """
    try run(
      """
      mkdir -p "$0/config/keepassxc" "$0/cache"; cat > "$0/config/keepassxc/keepassxc.ini" <<'END'
      \(settings)
      END
      rm -f "$0/db.kdbx"; cat > "$0/db.xml"
      printf 'pw\\npw\\n' | keepassxc-cli import -q -p "$0/db.xml" "$0/db.kdbx" 2>/dev/null
      """, input: Array(database.utf8))
    // It takes one that has the same folder for temporary files for itself, and ends.
    try startService(
      """
      export TMPDIR="$0" XDG_CACHE_HOME="$0/cache" QT_QPA_PLATFORM=offscreen
      printf 'pw\\n' | keepassxc --pw-stdin "$0/db.kdbx" >>"$0/log" 2>&1
      """)
    // It opens the database later.
    try run(
      """
      until gdbus call --session -d org.freedesktop.secrets -o /org/freedesktop/secrets/collection/db \
        -m org.freedesktop.DBus.Properties.Get org.freedesktop.Secret.Collection Locked 2>/dev/null |
        grep -q false; do
        kill -0 \(keyring) 2>/dev/null || { echo "KeePassXC has ended: $(tail -n 3 "$0/log")"; exit 1; }
      done
      """)
  }
}
