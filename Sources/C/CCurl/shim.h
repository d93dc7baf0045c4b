// libcurl(3). Functions with a variable number of arguments, which Swift can't call. No logic.
#pragma once

#include "functions.h"

// As in CSystemdBus.
#define CCURL_PRAGMA(text) _Pragma(#text)
#define CCURL_RENAME(name) CCURL_PRAGMA(redefine_extname name ccurl_##name)
CCURL_FUNCTIONS(CCURL_RENAME)

// Its macros would hide the functions.
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

static inline CURLcode shim_curl_set_number(CURL *easy, CURLoption option, long value) {
  return curl_easy_setopt(easy, option, value);
}

static inline CURLcode shim_curl_set_size(CURL *easy, CURLoption option, curl_off_t value) {
  return curl_easy_setopt(easy, option, value);
}

static inline CURLcode shim_curl_set_text(CURL *easy, CURLoption option, const char *value) {
  return curl_easy_setopt(easy, option, value);
}

static inline CURLcode shim_curl_set_error_text(CURL *easy, char *text) {
  return curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, text);
}

static inline CURLcode shim_curl_set_headers(CURL *easy, struct curl_slist *headers) {
  return curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
}

typedef size_t (*shim_curl_transfer)(char *bytes, size_t size, size_t count, void *context);
typedef curl_socket_t (*shim_curl_open)(void *context, curlsocktype purpose, struct curl_sockaddr *address);

// The four functions that libcurl calls, with `context` as their last argument, or first.
static inline void shim_curl_set_functions(CURL *easy, void *context, shim_curl_transfer read, shim_curl_transfer write,
                                           shim_curl_transfer header, shim_curl_open open) {
  curl_easy_setopt(easy, CURLOPT_READFUNCTION, read);
  curl_easy_setopt(easy, CURLOPT_READDATA, context);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, write);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, context);
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, header);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, context);
  curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open);
  curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, context);
}

// The socket of the connection that was used last; -1: there is none.
static inline curl_socket_t shim_curl_socket(CURL *easy) {
  curl_socket_t socket = CURL_SOCKET_BAD;
  return curl_easy_getinfo(easy, CURLINFO_ACTIVESOCKET, &socket) == CURLE_OK ? socket : CURL_SOCKET_BAD;
}

static inline void shim_curl_set_multi(CURLM *multi, CURLMoption option, long value) { curl_multi_setopt(multi, option, value); }

// The result of the transfer of a message of curl_multi_info_read(3), which has it in a union.
static inline CURLcode shim_curl_result(const CURLMsg *message) { return message->data.result; }

// Macros that Swift does not see.
static inline const curl_version_info_data *shim_curl_version(void) { return curl_version_info(CURLVERSION_NOW); }
static const size_t shim_curl_pause = CURL_READFUNC_PAUSE;
