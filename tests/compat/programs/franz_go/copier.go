// Copier copies a topic to another with franz-go, in transactions that hold the group's offsets.
//
// Usage: copier BOOTSTRAP SOURCE SINK GROUP TRANSACTIONAL_ID SESSION_MS classic|consumer
//
// It prints how many records it has copied with each commit, and ends on SIGTERM.  How it logs in is
// in the environment (login.go).
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	stopping, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	// As a supervised service does: a transaction whose end could not be sent to a dead broker is
	// for the next run to settle.
	for err := run(stopping, os.Args[1:]); err != nil; err = run(stopping, os.Args[1:]) {
		if stopping.Err() != nil {
			fmt.Println("failed:", err)
			os.Exit(1)
		}
		fmt.Println("starts over:", err)
		time.Sleep(100 * time.Millisecond)
	}
}

func run(stopping context.Context, args []string) error {
	source, sink := args[1], args[2]
	sessionMs, err := strconv.Atoi(args[5])
	if err != nil {
		return err
	}
	options := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(args[0], ",")...),
		kgo.ConsumeTopics(source),
		kgo.ConsumerGroup(args[3]),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.FetchMaxPartitionBytes(1024),
		kgo.FetchMaxWait(100 * time.Millisecond),
		kgo.RequireStableFetchOffsets(),
		kgo.DefaultProduceTopic(sink),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.TransactionalID(args[4]),
		kgo.TransactionTimeout(60 * time.Second),
		kgo.SessionTimeout(time.Duration(sessionMs) * time.Millisecond),
		kgo.HeartbeatInterval(200 * time.Millisecond),
		kgo.MetadataMinAge(50 * time.Millisecond),
		kgo.RetryBackoffFn(func(tries int) time.Duration {
			return min(time.Duration(tries)*50*time.Millisecond, time.Second)
		}),
		kgo.RequestRetries(1000),
		kgo.RetryTimeout(time.Minute),
		kgo.WithLogger(kgo.BasicLogger(os.Stderr, kgo.LogLevelWarn, nil)),
	}
	if args[6] == "consumer" {
		options = append(options, kgo.ServerSideBalancer())
	}
	login, err := loginOptions()
	if err != nil {
		return err
	}
	options = append(options, login...)
	session, err := kgo.NewGroupTransactSession(options...)
	if err != nil {
		return err
	}
	defer session.Close()
	for stopping.Err() == nil {
		fetches := session.PollRecords(stopping, 20)
		if fetches.NumRecords() == 0 {
			continue
		}
		if err := session.Begin(); err != nil {
			return fmt.Errorf("begin: %w", err)
		}
		promise := kgo.AbortingFirstErrPromise(session.Client())
		count := 0
		fetches.EachRecord(func(record *kgo.Record) {
			count++
			session.Produce(context.Background(),
				&kgo.Record{Value: record.Value, Partition: record.Partition}, promise.Promise())
		})
		sent := promise.Err() == nil
		committed, err := session.End(context.Background(), kgo.TransactionEndTry(sent))
		if err != nil && !errors.Is(err, context.Canceled) {
			return fmt.Errorf("end: %w", err)
		}
		if committed {
			fmt.Println("copied", count)
		}
	}
	return nil
}
