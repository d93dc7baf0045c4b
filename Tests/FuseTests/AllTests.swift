import Testing

/// One after the other: they mount, and count what the whole process holds.
@Suite(.serialized, .timeLimit(.minutes(1))) enum AllTests {}
