// The engines in memory are the model that the others are held against.
@_exported public import InMemory
