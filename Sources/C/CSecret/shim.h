// Code that Swift can't express: variadic calls and casts of callbacks. No logic.
#pragma once

// For secret_service_encode_dbus_secret and its kind, which the library has exported unchanged since 2012.
#define SECRET_API_SUBJECT_TO_CHANGE 1

#include "functions.h"

// Before the declarations: gives each function its name of CSecretLoader, so that the libraries are loaded with the
// first keyring, and not with each start of a program.
#define CSECRET_PRAGMA(text) _Pragma(#text)
#define CSECRET_RENAME(name) CSECRET_PRAGMA(redefine_extname name csecret_##name)
CSECRET_FUNCTIONS(CSECRET_RENAME)

#include <gio/gio.h>
#include <libsecret/secret.h>

// A service on a connection of our own: libsecret's own opening takes the process's one shared connection, and with it
// exit-on-close. Not initialised, as that would connect too; a proxy's calls need no more than its properties.
static inline SecretService *shim_service_new(GDBusConnection *bus, const char *name, int timeout) {
  return g_object_new(
      SECRET_TYPE_SERVICE, "g-connection", bus, "g-name", name, "g-object-path", "/org/freedesktop/secrets",
      "g-interface-name", "org.freedesktop.Secret.Service", "g-default-timeout", timeout, NULL);
}

// The connection's `closed` signal; its arguments are not passed on.
static inline gulong shim_on_closed(GDBusConnection *bus, void (*closed)(gpointer), gpointer data) {
  return g_signal_connect_data(bus, "closed", G_CALLBACK(closed), data, NULL, G_CONNECT_SWAPPED);
}

// The user at the other end of the connection's socket (SO_PEERCRED), or -1 where that can't be determined.
static inline long shim_peer_user(GDBusConnection *bus) {
  GIOStream *stream = g_dbus_connection_get_stream(bus);
  if (!G_IS_SOCKET_CONNECTION(stream)) return -1;
  GCredentials *peer = g_socket_get_credentials(g_socket_connection_get_socket(G_SOCKET_CONNECTION(stream)), NULL);
  if (!peer) return -1;
  uid_t user = g_credentials_get_unix_user(peer, NULL);
  g_object_unref(peer);
  return user == (uid_t)-1 ? -1 : (long)user;
}

static inline gboolean shim_is_bus_error(const GError *error) { return error->domain == G_DBUS_ERROR; }
static inline gboolean shim_is_io_error(const GError *error) { return error->domain == G_IO_ERROR; }
