import ViewFormats

extension PlainPlace {
  /// For the person: what programs find and do where a link into the mount has the file's place.
  var noteOfLink: String {
    "While nothing is mounted, programs find no file there. \(noteOfSaving)\n"
  }

  private var noteOfSaving: String {
    switch form {
    case .view(.env):
      "`sed -i`, `git checkout` and set_key of python-dotenv put a file in the link's place; `keyhole edit`, vim, emacs and nano save through it."
    case .view(.dockerConfig):
      "docker saves nothing through the link, and `docker logout` does not say so: after `keyhole credential install docker` its logins are items."
    case .view(.npmrc):
      "`npm config set` saves through the link; `sed -i` and some editors put a file in its place."
    case .view(.ini):
      "`aws configure` saves through the link; `sed -i` and some editors put a file in its place."
    default:
      "`sed -i`, and a program that saves by renaming, puts a file in the link's place; `keyhole edit` saves through it."
    }
  }
}
