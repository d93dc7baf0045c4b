// A client of libsecret that makes each kind of call of its simple API (secret_password_…) and of its complete API
// (SecretService, SecretCollection, SecretItem), and compares what comes back. Prints a line a check, and ends with 1
// when one failed. Environment: RUN, a text that no other item has.
//
// Build: cc libsecret-client.c $(pkg-config --cflags --libs libsecret-1)

// Declares the calls by path.
#define SECRET_API_SUBJECT_TO_CHANGE

#include <glib.h>
#include <libsecret/secret.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;
static int checks = 0;

static void check(const char *name, gboolean fine, GError **error) {
  checks += 1;
  if (!fine || (error && *error)) {
    failures += 1;
    printf("not ok - %s: %s\n", name, error && *error ? (*error)->message : "another result");
  } else {
    printf("ok - %s\n", name);
  }
  if (error) g_clear_error(error);
}

static const SecretSchema schema = {
  "org.example.Conformance",
  SECRET_SCHEMA_NONE,
  {
    { "run", SECRET_SCHEMA_ATTRIBUTE_STRING },
    { "number", SECRET_SCHEMA_ATTRIBUTE_INTEGER },
    { "even", SECRET_SCHEMA_ATTRIBUTE_BOOLEAN },
    { NULL, 0 },
  },
  0, 0, 0, 0, 0, 0, 0, 0,
};

// The same attributes, found whatever the schema of the item is.
static const SecretSchema any_schema = {
  "org.example.Other",
  SECRET_SCHEMA_DONT_MATCH_NAME,
  { { "run", SECRET_SCHEMA_ATTRIBUTE_STRING }, { "number", SECRET_SCHEMA_ATTRIBUTE_INTEGER }, { NULL, 0 } },
  0, 0, 0, 0, 0, 0, 0, 0,
};

static GMainLoop *loop;
static GAsyncResult *finished;

static void done(GObject *source, GAsyncResult *result, gpointer data) {
  (void)source;
  (void)data;
  finished = g_object_ref(result);
  g_main_loop_quit(loop);
}

static GAsyncResult *wait_for_result(void) {
  g_clear_object(&finished);
  g_main_loop_run(loop);
  return finished;
}

static void simple(const char *run) {
  GError *error = NULL;
  gchar *found;
  gboolean fine = secret_password_store_sync(&schema, SECRET_COLLECTION_DEFAULT, "label 1", "one", NULL, &error,
                                             "run", run, "number", 1, "even", FALSE, NULL);
  check("secret_password_store_sync", fine, &error);
  found = secret_password_lookup_sync(&schema, NULL, &error, "run", run, "number", 1, NULL);
  check("secret_password_lookup_sync", g_strcmp0(found, "one") == 0, &error);
  secret_password_free(found);
  found = secret_password_lookup_sync(&schema, NULL, &error, "run", run, "number", 99, NULL);
  check("secret_password_lookup_sync of nothing", found == NULL, &error);
  found = secret_password_lookup_nonpageable_sync(&schema, NULL, &error, "run", run, NULL);
  check("secret_password_lookup_nonpageable_sync", g_strcmp0(found, "one") == 0, &error);
  secret_password_free(found);
  found = secret_password_lookup_sync(&any_schema, NULL, &error, "run", run, "number", 1, NULL);
  check("SECRET_SCHEMA_DONT_MATCH_NAME", g_strcmp0(found, "one") == 0, &error);
  secret_password_free(found);

  fine = secret_password_store_sync(&schema, SECRET_COLLECTION_DEFAULT, "label 1b", "other", NULL, &error, "run", run,
                                    "number", 1, "even", FALSE, NULL);
  check("secret_password_store_sync again", fine, &error);
  GList *items = secret_password_search_sync(&schema, SECRET_SEARCH_ALL | SECRET_SEARCH_LOAD_SECRETS, NULL, &error,
                                             "run", run, NULL);
  check("secret_password_search_sync: replaced, not added", g_list_length(items) == 1, &error);
  if (items) {
    gchar *label = secret_retrievable_get_label(items->data);
    check("secret_retrievable_get_label", g_strcmp0(label, "label 1b") == 0, NULL);
    g_free(label);
    SecretValue *value = secret_retrievable_retrieve_secret_sync(items->data, NULL, &error);
    check("secret_retrievable_retrieve_secret_sync", value && !strcmp(secret_value_get_text(value), "other"), &error);
    if (value) secret_value_unref(value);
    GHashTable *attributes = secret_retrievable_get_attributes(items->data);
    check("secret_retrievable_get_attributes",
          !g_strcmp0(g_hash_table_lookup(attributes, "run"), run) &&
            !g_strcmp0(g_hash_table_lookup(attributes, "even"), "false") &&
            !g_strcmp0(g_hash_table_lookup(attributes, "xdg:schema"), "org.example.Conformance"),
          NULL);
    g_hash_table_unref(attributes);
    check("secret_retrievable_get_created and _modified",
          secret_retrievable_get_created(items->data) > 0 &&
            secret_retrievable_get_modified(items->data) >= secret_retrievable_get_created(items->data), NULL);
  }
  g_list_free_full(items, g_object_unref);

  guchar bytes[300];
  for (unsigned at = 0; at < sizeof bytes; at += 1) bytes[at] = (guchar)at;
  SecretValue *binary = secret_value_new((gchar *)bytes, sizeof bytes, "application/octet-stream");
  fine = secret_password_store_binary_sync(&schema, SECRET_COLLECTION_DEFAULT, "binary", binary, NULL, &error, "run",
                                           run, "number", 2, NULL);
  check("secret_password_store_binary_sync", fine, &error);
  secret_value_unref(binary);
  binary = secret_password_lookup_binary_sync(&schema, NULL, &error, "run", run, "number", 2, NULL);
  gsize length = 0;
  const gchar *content = binary ? secret_value_get(binary, &length) : NULL;
  check("secret_password_lookup_binary_sync", length == sizeof bytes && !memcmp(content, bytes, length), &error);
  if (binary) secret_value_unref(binary);

  fine = secret_password_store_sync(&schema, SECRET_COLLECTION_SESSION, "fleeting", "memory", NULL, &error, "run", run,
                                    "number", 3, NULL);
  check("secret_password_store_sync to SECRET_COLLECTION_SESSION", fine, &error);
  found = secret_password_lookup_sync(&schema, NULL, &error, "run", run, "number", 3, NULL);
  check("secret_password_lookup_sync from the session", g_strcmp0(found, "memory") == 0, &error);
  secret_password_free(found);

  secret_password_store(&schema, NULL, "asynchronous", "later", NULL, done, NULL, "run", run, "number", 4, NULL);
  check("secret_password_store", secret_password_store_finish(wait_for_result(), &error), &error);
  secret_password_lookup(&schema, NULL, done, NULL, "run", run, "number", 4, NULL);
  found = secret_password_lookup_finish(wait_for_result(), &error);
  check("secret_password_lookup", g_strcmp0(found, "later") == 0, &error);
  secret_password_free(found);
  secret_password_search(&schema, SECRET_SEARCH_ALL, NULL, done, NULL, "run", run, NULL);
  items = secret_password_search_finish(wait_for_result(), &error);
  check("secret_password_search", g_list_length(items) >= 3, &error);
  g_list_free_full(items, g_object_unref);

  check("secret_password_clear_sync", secret_password_clear_sync(&schema, NULL, &error, "run", run, "number", 4, NULL),
        &error);
  secret_password_clear(&schema, NULL, done, NULL, "run", run, NULL);
  check("secret_password_clear", secret_password_clear_finish(wait_for_result(), &error), &error);
  found = secret_password_lookup_sync(&schema, NULL, &error, "run", run, NULL);
  check("secret_password_lookup_sync after clearing", found == NULL, &error);
  fine = secret_password_clear_sync(&schema, NULL, &error, "run", run, NULL);
  check("secret_password_clear_sync of nothing", !fine, &error);
}

static void service_calls(SecretService *service, GHashTable *attributes) {
  GError *error = NULL;
  SecretValue *value = secret_value_new("two", -1, "text/plain");
  check("secret_service_store_sync",
        secret_service_store_sync(service, &schema, attributes, SECRET_COLLECTION_DEFAULT, "by service", value, NULL,
                                  &error),
        &error);
  secret_value_unref(value);
  value = secret_service_lookup_sync(service, &schema, attributes, NULL, &error);
  check("secret_service_lookup_sync", value && !strcmp(secret_value_get_text(value), "two"), &error);
  if (value) secret_value_unref(value);
  GList *items = secret_service_search_sync(
    service, &schema, attributes, SECRET_SEARCH_ALL | SECRET_SEARCH_UNLOCK | SECRET_SEARCH_LOAD_SECRETS, NULL, &error);
  check("secret_service_search_sync", g_list_length(items) == 1, &error);
  if (items) {
    value = secret_item_get_secret(items->data);
    check("secret_item_get_secret", value && !strcmp(secret_value_get_text(value), "two"), NULL);
    if (value) secret_value_unref(value);
    GList *unlocked = NULL;
    gint count = secret_service_unlock_sync(service, items, NULL, &unlocked, &error);
    check("secret_service_unlock_sync", count == 1 && g_list_length(unlocked) == 1, &error);
    g_list_free_full(unlocked, g_object_unref);
  }
  g_list_free_full(items, g_object_unref);
  check("secret_service_clear_sync", secret_service_clear_sync(service, &schema, attributes, NULL, &error), &error);
}

static void item_calls(SecretService *service, SecretCollection *collection, GHashTable *attributes) {
  GError *error = NULL;
  SecretValue *value = secret_value_new("three", -1, "text/plain");
  SecretItem *item = secret_item_create_sync(collection, &schema, attributes, "item", value,
                                             SECRET_ITEM_CREATE_NONE, NULL, &error);
  check("secret_item_create_sync", item != NULL, &error);
  secret_value_unref(value);
  if (!item) return;
  check("secret_item_get_locked", !secret_item_get_locked(item), NULL);
  check("secret_item_load_secret_sync", secret_item_load_secret_sync(item, NULL, &error), &error);
  value = secret_item_get_secret(item);
  check("secret_item_get_secret after loading", value && !strcmp(secret_value_get_text(value), "three"), NULL);
  if (value) secret_value_unref(value);
  check("secret_item_set_label_sync", secret_item_set_label_sync(item, "changed", NULL, &error), &error);
  value = secret_value_new("four", -1, "text/plain");
  check("secret_item_set_secret_sync", secret_item_set_secret_sync(item, value, NULL, &error), &error);
  secret_value_unref(value);
  GHashTable *more = g_hash_table_new(g_str_hash, g_str_equal);
  g_hash_table_insert(more, "run", g_hash_table_lookup(attributes, "run"));
  g_hash_table_insert(more, "number", "7");
  check("secret_item_set_attributes_sync", secret_item_set_attributes_sync(item, &schema, more, NULL, &error), &error);
  g_hash_table_unref(more);
  SecretItem *again = secret_item_new_for_dbus_path_sync(
    service, g_dbus_proxy_get_object_path(G_DBUS_PROXY(item)), SECRET_ITEM_LOAD_SECRET, NULL, &error);
  check("secret_item_new_for_dbus_path_sync", again != NULL, &error);
  if (again) {
    gchar *label = secret_item_get_label(again);
    value = secret_item_get_secret(again);
    GHashTable *found = secret_item_get_attributes(again);
    check("all changes are there",
          !g_strcmp0(label, "changed") && value && !strcmp(secret_value_get_text(value), "four") &&
            !g_strcmp0(g_hash_table_lookup(found, "number"), "7"), NULL);
    g_free(label);
    g_hash_table_unref(found);
    if (value) secret_value_unref(value);
    GList one = { .data = again };
    check("secret_item_load_secrets_sync", secret_item_load_secrets_sync(&one, NULL, &error), &error);
    g_object_unref(again);
  }
  check("secret_item_delete_sync", secret_item_delete_sync(item, NULL, &error), &error);
  g_object_unref(item);
}

static void collection_calls(SecretService *service, GHashTable *attributes) {
  GError *error = NULL;
  GList *collections = secret_service_get_collections(service);
  check("secret_service_get_collections", g_list_length(collections) >= 1, NULL);
  g_list_free_full(collections, g_object_unref);
  gchar *path = secret_service_read_alias_dbus_path_sync(service, SECRET_COLLECTION_DEFAULT, NULL, &error);
  check("secret_service_read_alias_dbus_path_sync", path != NULL, &error);
  g_free(path);
  SecretCollection *collection = secret_collection_for_alias_sync(
    service, SECRET_COLLECTION_DEFAULT, SECRET_COLLECTION_LOAD_ITEMS, NULL, &error);
  check("secret_collection_for_alias_sync", collection != NULL, &error);
  if (!collection) return;
  gchar *label = secret_collection_get_label(collection);
  check("secret_collection_get_label", label != NULL, NULL);
  g_free(label);
  check("secret_collection_get_locked", !secret_collection_get_locked(collection), NULL);
  item_calls(service, collection, attributes);
  GList *items =
    secret_collection_search_sync(collection, &schema, attributes, SECRET_SEARCH_ALL, NULL, &error);
  check("secret_collection_search_sync of nothing", items == NULL, &error);
  check("secret_collection_load_items_sync", secret_collection_load_items_sync(collection, NULL, &error), &error);
  check("secret_service_set_alias_sync",
        secret_service_set_alias_sync(service, SECRET_COLLECTION_DEFAULT, collection, NULL, &error), &error);
  g_object_unref(collection);
}

int main(void) {
  const char *run = getenv("RUN");
  GError *error = NULL;
  if (!run) return 2;
  loop = g_main_loop_new(NULL, FALSE);
  simple(run);
  SecretService *service =
    secret_service_get_sync(SECRET_SERVICE_OPEN_SESSION | SECRET_SERVICE_LOAD_COLLECTIONS, NULL, &error);
  check("secret_service_get_sync", service != NULL, &error);
  if (service) {
    GHashTable *attributes = secret_attributes_build(&schema, "run", run, "number", 5, NULL);
    check("secret_service_ensure_session_sync", secret_service_ensure_session_sync(service, NULL, &error), &error);
    check("the session is encrypted",
          !g_strcmp0(secret_service_get_session_algorithms(service), "dh-ietf1024-sha256-aes128-cbc-pkcs7"), NULL);
    check("secret_service_load_collections_sync", secret_service_load_collections_sync(service, NULL, &error), &error);
    service_calls(service, attributes);
    collection_calls(service, attributes);
    g_hash_table_unref(attributes);
    g_object_unref(service);
    secret_service_disconnect();
  }
  printf("1..%d\n", checks);
  return failures != 0;
}
