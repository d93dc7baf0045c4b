// StoreConformance
