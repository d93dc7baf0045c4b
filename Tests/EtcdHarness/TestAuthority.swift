/// Certificates for a test, made by openssl(1): an authority, one for servers on 127.0.0.1, and one for each client, whose common
/// name is the user of etcd.
public enum TestAuthority {
  /// Leaves `ca.pem`, `server.pem`, `server.key`, and `NAME.pem` and `NAME.key` of each client in a folder.
  public static func make(in folder: String, clients: [String]) throws {
    let script = """
      set -e
      cd "$0"
      new() { openssl ecparam -genkey -name prime256v1 -noout -out "$1.key"; }
      new ca
      openssl req -x509 -new -key ca.key -subj "/CN=test authority" -days 2 -out ca.pem \\
        -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign
      sign() {
        new "$1"
        openssl req -new -key "$1.key" -subj "/CN=$1" -out "$1.csr"
        printf '%s\\n' "subjectAltName=$2" "extendedKeyUsage=$3" >"$1.ext"
        openssl x509 -req -in "$1.csr" -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile "$1.ext" -out "$1.pem"
      }
      sign server IP:127.0.0.1,DNS:localhost serverAuth,clientAuth
      for client; do sign "$client" "DNS:$client" clientAuth; done
      """
    try Program.run(["/bin/sh", "-c", "(\(script)) >/dev/null 2>\"$0/openssl.log\"", folder] + clients)
  }
}
