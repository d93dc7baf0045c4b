import Model
import Platform
package import Store

/// Tells the user of a request that waits for `keyhole approve`, by the notifications of the desktop
/// (org.freedesktop.Notifications), where there are some.
package enum DesktopNotification {
  private static let busctl = "/usr/bin/busctl"
  private static let service = "org.freedesktop.Notifications"
  /// How long the call may take, in seconds.
  private static let patience = 3

  /// Shows the program, the path and the commands that answer. It does not wait for the desktop.
  package static func show(for request: ListedRequest) {
    let threads = WaitingThreads()
    _ = threads.run { show("Keyhole: a program waits for a secret", body(of: request), request.secondsLeft) }
  }

  /// Shows that a file has taken the place of a symbolic link to a view. It does not wait for the desktop.
  package static func showReplacedLink(_ link: String, _ view: String) {
    let body = """
      \(link) was a link to views/\(view), and is a file now. Nothing of it was taken over.
      keyhole view --take-in \(link.quotedForShell)
      """
    let threads = WaitingThreads()
    _ = threads.run { show("Keyhole: a link was replaced", body.escapedAsMarkup, 60) }
  }

  static func body(of request: ListedRequest) -> String {
    let more = request.paths.count > 1 ? " and \(request.paths.count - 1) more" : ""
    return """
      \(request.caller.programName) wants \(request.paths.first ?? "")\(more)\(request.purpose == .unlock ? ", and the vault is locked" : "").
      keyhole approve \(request.number)
      keyhole deny \(request.number)
      """.escapedAsMarkup
  }

  private static func show(_ summary: String, _ body: String, _ seconds: Int) {
    // Its name in /proc is readable by every user: it holds the names that the notification shows.
    let call = ["call", service, "/org/freedesktop/Notifications", service, "Notify", "susssasa{sv}i"]
    let arguments = ["Keyhole", "0", "dialog-password", summary, body, "0", "0", "\(min(seconds, 3600))000"]
    let words = [busctl, "--user", "--auto-start=no"] + call + arguments
    guard Files.exists(UserManager.runtimeFolder + "/bus"),
      let child = try? Child(
        words, input: .nothing, errors: .discarded,
        environment: ["PATH=/usr/bin:/bin"] + UserManager.variables)
    else { return }
    defer { child.end() }
    _ = child.waitForEnd(seconds: patience)
  }
}

extension String {
  /// The body of a notification is a subset of HTML.
  fileprivate var escapedAsMarkup: String {
    replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
  }
}
