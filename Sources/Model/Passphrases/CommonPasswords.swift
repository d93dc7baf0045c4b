/// Passwords that lists of leaked ones begin with, and parts of passwords that are as common, about the most frequent first; in small
/// letters. The place in the list is the cost of a guess.
enum CommonPasswords {
  static let all: [[UInt8]] = text.split(whereSeparator: { $0 == " " || $0 == "\n" }).map { Array($0.utf8) }

  private static let text = """
    123456 password 123456789 12345678 12345 qwerty 1234567 111111 123123 1234567890 abc123 1234 password1 iloveyou
    1q2w3e4r 000000 qwerty123 zaq12wsx dragon sunshine princess letmein 654321 monkey 27653 1qaz2wsx 123321
    qwertyuiop superman asdfghjkl trustno1 welcome login admin root toor user guest test secret changeme default
    football baseball master hello freedom whatever qazwsx michael shadow ninja mustang jordan access flower
    lovely passw0rd starwars charlie donald batman solo cheese computer internet pokemon michelle jessica pepper
    ashley daniel killer summer winter spring autumn hunter hunter2 buster soccer hockey george thomas robert
    andrew joshua jennifer amanda nicole maggie ginger cookie chocolate banana orange purple yellow silver golden
    diamond matrix phoenix thunder tigger tiger lion eagle falcon wolf bear horse rabbit snoopy harley ranger
    yankees dallas chelsea arsenal liverpool barcelona london paris berlin google facebook linkedin samsung apple
    microsoft windows linux ubuntu debian correcthorsebatterystaple correct battery staple passphrase passwort kennwort geheim hallo
    schatz motdepasse azerty bonjour contrasena hola amor amore ciao senha brasil qwertz wachtwoord welkom
    heslo haslo kodeord losenord salasana parola sifre private keyhole vault keychain keyring unlock open love sex god money
    family forever angel baby friend monday tuesday wednesday thursday friday saturday sunday january february
    march april june july august september october november december
    """
}
