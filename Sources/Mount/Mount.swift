// Mount
