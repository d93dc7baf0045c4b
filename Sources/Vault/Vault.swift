// Vault
