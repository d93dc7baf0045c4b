// The calls that go-keyring makes, and by it gh: plain sessions, the collection login or the alias default, searches in
// the collection. Prints a line a check, and ends with 1 when one failed. Environment: RUN, a text that no other item
// has. Build: GO111MODULE=off GOPATH=/usr/share/gocode go build (with Debian's golang-dbus-dev).
package main

import (
	"fmt"
	"os"

	"github.com/godbus/dbus"
)

type secret struct {
	Session     dbus.ObjectPath
	Parameters  []byte
	Value       []byte
	ContentType string `dbus:"content_type"`
}

const (
	root       = dbus.ObjectPath("/org/freedesktop/secrets")
	login      = dbus.ObjectPath("/org/freedesktop/secrets/collection/login")
	service    = "org.freedesktop.Secret.Service."
	collection = "org.freedesktop.Secret.Collection."
	item       = "org.freedesktop.Secret.Item."
)

var failures int

func check(name string, fine bool, err error) bool {
	if fine && err == nil {
		fmt.Printf("ok - %s\n", name)
		return true
	}
	failures++
	fmt.Printf("not ok - %s: %v\n", name, err)
	return false
}

func unlock(object dbus.BusObject, path dbus.ObjectPath) error {
	var unlocked []dbus.ObjectPath
	var prompt dbus.ObjectPath
	if err := object.Call(service+"Unlock", 0, []dbus.ObjectPath{path}).Store(&unlocked, &prompt); err != nil {
		return err
	}
	if prompt != "/" {
		return fmt.Errorf("Unlock gives the prompt %s", prompt)
	}
	return nil
}

func main() {
	connection, err := dbus.SessionBus()
	if !check("the session bus", connection != nil, err) {
		os.Exit(1)
	}
	object := connection.Object("org.freedesktop.secrets", root)

	var output dbus.Variant
	var session dbus.ObjectPath
	err = object.Call(service+"OpenSession", 0, "plain", dbus.MakeVariant("")).Store(&output, &session)
	if !check("OpenSession plain", session != "", err) {
		os.Exit(1)
	}

	// The collection login where there is one, else the alias default.
	path := login
	collections, err := object.GetProperty("org.freedesktop.Secret.Service.Collections")
	check("Collections", err == nil, err)
	known := false
	for _, name := range collections.Value().([]dbus.ObjectPath) {
		known = known || name == login
	}
	if !known {
		path = root + "/aliases/default"
	}
	fmt.Printf("# collection: %s\n", path)
	check("Unlock", true, unlock(object, path))
	store := connection.Object("org.freedesktop.secrets", path)

	attributes := map[string]string{"username": "user", "service": os.Getenv("RUN")}
	properties := map[string]dbus.Variant{
		"org.freedesktop.Secret.Item.Label":      dbus.MakeVariant("Password for 'user' on 'conformance'"),
		"org.freedesktop.Secret.Item.Attributes": dbus.MakeVariant(attributes),
	}
	for _, value := range []string{"first", "second", "mit Ümläuten\n"} {
		var created, prompt dbus.ObjectPath
		sent := secret{session, []byte{}, []byte(value), "text/plain; charset=utf8"}
		err = store.Call(collection+"CreateItem", 0, properties, sent, true).Store(&created, &prompt)
		check("CreateItem", created != "/" && prompt == "/", err)

		var found []dbus.ObjectPath
		err = store.Call(collection+"SearchItems", 0, attributes).Store(&found)
		if !check("SearchItems", len(found) == 1, err) {
			continue
		}
		var got secret
		err = connection.Object("org.freedesktop.secrets", found[0]).Call(item+"GetSecret", 0, session).Store(&got)
		check("GetSecret", string(got.Value) == value, err)
	}

	var found []dbus.ObjectPath
	err = store.Call(collection+"SearchItems", 0, attributes).Store(&found)
	check("SearchItems before Delete", len(found) == 1, err)
	for _, name := range found {
		var prompt dbus.ObjectPath
		err = connection.Object("org.freedesktop.secrets", name).Call(item+"Delete", 0).Store(&prompt)
		check("Delete", prompt == "/", err)
	}
	err = store.Call(collection+"SearchItems", 0, attributes).Store(&found)
	check("SearchItems after Delete", len(found) == 0, err)
	err = connection.Object("org.freedesktop.secrets", session).Call("org.freedesktop.Secret.Session.Close", 0).Err
	check("Close", true, err)
	if failures > 0 {
		os.Exit(1)
	}
}
