// Writes a file to standard output by Foundation: what a command of Swift costs that is linked with the libraries of `keyhole` and
// does nothing else.
import CFuse
import Foundation
import GRDB

let file = URL(fileURLWithPath: CommandLine.arguments[1])
FileHandle.standardOutput.write(try Data(contentsOf: file))
