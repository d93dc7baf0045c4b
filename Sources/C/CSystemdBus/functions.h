// The functions of libsystemd that are called. Each is called as `cservice_NAME`, which CServiceLoader defines.
#pragma once

#define CSYSTEMD_BUS_FUNCTIONS(F) \
  F(sd_bus_add_filter) F(sd_bus_call) F(sd_bus_call_async) F(sd_bus_close) F(sd_bus_creds_get_euid) \
  F(sd_bus_creds_unref) F(sd_bus_error_free) F(sd_bus_flush) F(sd_bus_get_events) F(sd_bus_get_fd) \
  F(sd_bus_get_owner_creds) F(sd_bus_get_timeout) F(sd_bus_get_unique_name) F(sd_bus_is_open) \
  F(sd_bus_message_append_array) F(sd_bus_message_append_array_space) F(sd_bus_message_append_basic) \
  F(sd_bus_message_at_end) F(sd_bus_message_close_container) F(sd_bus_message_enter_container) \
  F(sd_bus_message_exit_container) F(sd_bus_message_get_error) F(sd_bus_message_get_expect_reply) \
  F(sd_bus_message_get_interface) F(sd_bus_message_get_member) F(sd_bus_message_get_path) \
  F(sd_bus_message_get_sender) F(sd_bus_message_get_signature) F(sd_bus_message_get_type) \
  F(sd_bus_message_new_method_call) F(sd_bus_message_new_method_error) F(sd_bus_message_new_method_return) \
  F(sd_bus_message_new_signal) F(sd_bus_message_open_container) F(sd_bus_message_peek_type) \
  F(sd_bus_message_read_array) F(sd_bus_message_read_basic) F(sd_bus_message_ref) F(sd_bus_message_sensitive) \
  F(sd_bus_message_skip) F(sd_bus_message_unref) F(sd_bus_new) F(sd_bus_process) F(sd_bus_send) \
  F(sd_bus_set_address) F(sd_bus_set_bus_client) F(sd_bus_set_close_on_exit) F(sd_bus_start) F(sd_bus_unref)
