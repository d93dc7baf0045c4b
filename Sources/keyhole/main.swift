import SecretMemory

hardenProcess()
KeyholeCommand.run(Arguments.ofProcess())
