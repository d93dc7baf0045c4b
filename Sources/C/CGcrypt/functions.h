// The functions of libgcrypt that are called. Each is called as `cservice_NAME`, which CServiceLoader defines.
#pragma once

#define CGCRYPT_FUNCTIONS(F) \
  F(gcry_check_version) F(gcry_cipher_close) F(gcry_cipher_decrypt) F(gcry_cipher_encrypt) F(gcry_cipher_open) \
  F(gcry_cipher_setiv) F(gcry_cipher_setkey) F(gcry_control) F(gcry_mpi_cmp) F(gcry_mpi_cmp_ui) F(gcry_mpi_new) \
  F(gcry_mpi_powm) F(gcry_mpi_print) F(gcry_mpi_release) F(gcry_mpi_scan) F(gcry_mpi_set_flag) F(gcry_mpi_snew) F(gcry_mpi_sub_ui) \
  F(gcry_randomize)
