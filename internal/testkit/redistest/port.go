package redistest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Servers listen below the ports that Linux (32768 up) and macOS (49152 up)
// hand to outgoing connections: in that range a client that redials a killed
// server can be given the server's own port, which Restart then finds taken.
// A cluster node talks to the others on its port plus 10000, which lands in
// a range of its own below the same line; --cluster-port, which Redis 6 does
// not have, is not needed.
const (
	firstPort = 12000
	ports     = 10000
	busOffset = 10000
)

// errPortTaken says that a server could not listen because its port was
// taken between freePort's look and its own.
var errPortTaken = errors.New("port taken")

// freePort finds a loopback port that is free, as is the one busOffset above.
// It is free at the time of looking only; the caller tries again.
func freePort() (int, error) {
	var err error
	for range 200 {
		port := firstPort + rand.IntN(ports)
		if err = canListen(port); err != nil {
			continue
		}
		if err = canListen(port + busOffset); err != nil {
			continue
		}
		return port, nil
	}
	return 0, fmt.Errorf("no free port: %w", err)
}

func canListen(port int) error {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return err
	}
	return l.Close()
}
