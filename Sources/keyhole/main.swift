import SecretMemory

hardenProcess()
KeyholeCommand.run(Array(CommandLine.arguments.dropFirst()))
