// The functions of libsecret and GLib that are called. Each is called as `csecret_NAME`, which CSecretLoader defines.
#pragma once

#define CSECRET_FUNCTIONS(F) \
  F(g_cancellable_cancel) F(g_cancellable_new) F(g_credentials_get_unix_user) F(g_dbus_connection_call) \
  F(g_dbus_connection_call_finish) F(g_dbus_connection_close) F(g_dbus_connection_get_stream) \
  F(g_dbus_connection_is_closed) F(g_dbus_connection_new_for_address) \
  F(g_dbus_connection_new_for_address_finish) F(g_dbus_connection_set_exit_on_close) \
  F(g_dbus_connection_signal_subscribe) F(g_dbus_connection_signal_unsubscribe) \
  F(g_dbus_error_get_remote_error) F(g_dbus_error_strip_remote_error) F(g_error_free) F(g_free) \
  F(g_idle_source_new) F(g_io_error_quark) F(g_main_context_is_owner) F(g_main_context_iteration) \
  F(g_main_context_new) F(g_main_context_pop_thread_default) F(g_main_context_push_thread_default) \
  F(g_main_context_unref) F(g_object_new) F(g_object_unref) F(g_socket_connection_get_socket) \
  F(g_socket_connection_get_type) F(g_socket_get_credentials) F(g_source_attach) F(g_source_set_callback) \
  F(g_source_set_priority) F(g_source_unref) F(g_timeout_source_new) F(g_type_check_instance_cast) \
  F(g_type_check_instance_is_a) F(g_variant_get_boolean) F(g_variant_get_child_value) F(g_variant_get_string) \
  F(g_variant_get_type_string) F(g_variant_get_uint64) F(g_variant_get_variant) F(g_variant_is_container) \
  F(g_variant_n_children) F(g_variant_new_array) F(g_variant_new_boolean) F(g_variant_new_dict_entry) \
  F(g_variant_new_object_path) F(g_variant_new_string) F(g_variant_new_tuple) F(g_variant_new_uint32) \
  F(g_variant_new_variant) F(g_variant_ref_sink) F(g_variant_type_free) F(g_variant_type_new) \
  F(g_variant_unref) F(secret_service_decode_dbus_secret) F(secret_service_encode_dbus_secret) \
  F(secret_service_ensure_session) F(secret_service_ensure_session_finish) \
  F(secret_service_get_session_algorithms) F(secret_service_get_session_dbus_path) F(secret_service_get_type) \
  F(secret_value_get) F(secret_value_get_content_type) F(secret_value_new) F(secret_value_unref)
