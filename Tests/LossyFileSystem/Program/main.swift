import Glibc

let arguments = Array(CommandLine.arguments.dropFirst())
guard let word = arguments.first, let job = Job(Array(arguments.dropFirst())) else { exit(2) }
do {
  switch word {
  case "vault": try job.vault()
  case "passwords": try job.passwords()
  case "passphrases": try job.passphrases()
  case "read": try job.read()
  case "suites": try job.suites()
  case "journals": try job.journals()
  default: exit(2)
  }
} catch {
  print(error)
  exit(1)
}
