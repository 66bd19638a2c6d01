// Package hashing computes the hashes of passwords in processes of the lowest priority, so that a
// flood of sign-ins does not delay the other work of the server.
//
// Go has no priorities. It gives each goroutine up to 10 ms at a time, and treats a hash of 20 ms
// and more like a token request of 0.5 ms. The operating system has priorities. A [Pool] starts the
// server's own program again with [Argument], one process per password hashed at the same time, and
// keeps these processes for a while:
//
//	if hashing.IsChild(os.Args) { // the first line of main
//		os.Exit(hashing.Child())
//	}
//	…
//	pool, err := hashing.Open(hashing.Options{Logger: log})
//	if err != nil {
//		// err says why it cannot be; passwords are hashed in the server
//	}
//	defer pool.Close()
//	passwords := secret.NewPasswords(secret.PasswordOptions{Separate: pool.Compute})
//
// A program must not open a pool unless its main checks for [Argument]: it would start itself as a
// whole. So only cmd/oauth-server opens one.
//
// # A child
//
// A child takes one task at a time from its standard input and writes the result to its standard
// output. Passwords go only through that pipe: the child has no arguments besides [Argument],
// almost no environment, and no log. It ends when its input ends, so it never outlives the server,
// even if the server is killed. It is in a process group of its own and ignores SIGINT, SIGTERM and
// SIGHUP: after Ctrl-C in a terminal, the server can drain first.
//
// # When something fails
//
// [Pool.Compute] returns an error and ends the child if the child dies, sends an invalid answer, or
// takes too long. A process of the lowest priority gets little time while all processors are busy.
// The caller then computes the hash itself. The next call starts another child. After failures in a
// row, a child is started only after a pause.
//
// If the server itself uses at least half of the processors in that time, the error is
// [secret.ErrStarved], and the caller computes nothing: an overloaded server would take even longer
// for everything else. The child finishes its task, and until it has a result, all tasks are refused
// at once. If the server has left it the processors for a second and it still has no result, the
// child is ended. So a task of another program, which may take long, does not block all others for
// long.
package hashing
