// The tests use nothing that is not there.
