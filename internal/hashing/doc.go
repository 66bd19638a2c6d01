// Package hashing computes the hashes of passwords in processes of the lowest priority, so that a flood of
// sign-ins does not delay what the server does besides.
//
// Go has no priorities: it gives each goroutine up to 10 ms at a time, and a hash of 20 ms and more is as important
// to it as a token request of 0.5 ms. The operating system has them. A [Pool] starts the server's own program
// again, with [Argument], as often as passwords are hashed at once, and keeps these processes for a while:
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
// A program whose main does not look for [Argument] must not open a pool: it would start itself as a
// whole. So no package but cmd/oauth-server does.
//
// # A child
//
// It takes one task at a time from its standard input and writes the result to its standard output.
// Passwords go through that pipe only: it has no arguments besides [Argument], hardly an environment, and no log. It
// ends when its input does, so it never outlives the server, also if that is killed. It is in a process group of its
// own and ignores SIGINT, SIGTERM and SIGHUP: Ctrl-C in a terminal has the server drain first.
//
// # When something fails
//
// [Pool.Compute] returns an error and ends the child if that dies, answers what does not fit, or takes too
// long: the lowest priority gets little of a machine whose processors are all busy. The caller then computes the
// hash itself. The next call starts another child; after failures in a row, only after a pause.
//
// Where it is the server itself that keeps the processors busy, the error is [secret.ErrStarved], and the caller
// computes nothing: an overloaded server would take even longer for everything else. The child finishes its task, and until it
// has a result, all tasks are refused at once. If it has none a second after the server has left it the processors, it
// is ended, so no task of another program, which may take long, has all others refused for long.
package hashing
