package example

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"kcluster"
)

func TestRecordsSurviveTheDeathOfTheirLeader(t *testing.T) {
	began := time.Now()
	cluster := kcluster.Start(t, `
brokers: 3
profile: fast
topics:
  orders: {partitions: 1, config: {min.insync.replicas: 2}}
`)
	client := connect(t, cluster)

	send(t, client, "before")
	kill := cluster.Act("kill: leader(orders-0)")
	send(t, client, "after")
	cluster.Undo(kill)
	cluster.Await("isr(orders-0) = 3")

	var values []string
	for len(values) < 2 {
		client.PollFetches(context.Background()).EachRecord(func(record *kgo.Record) {
			values = append(values, string(record.Value))
			cluster.Processed(record.Topic, record.Partition, record.Offset)
		})
	}
	if !slices.Equal(values, []string{"before", "after"}) {
		t.Fatalf("read %q", values)
	}
	cluster.RequireProcessedOnce("orders")
	cluster.RequireValid()
	t.Logf("leader's death: %d ms", time.Since(began).Milliseconds())
}

func TestALostRecordIsReportedWithItsCause(t *testing.T) {
	cluster := kcluster.Start(t, `
brokers: 3
profile: fast
topics:
  orders: {partitions: 1, replication_factor: 1}
`)
	send(t, connect(t, cluster), "lost")

	cluster.Undo(cluster.Act("kill: {brokers: leader(orders-0), how: wipe}"))

	findings := cluster.Findings()
	if !strings.Contains(findings, "lost-write") || !strings.Contains(findings, "because of") {
		t.Fatalf("findings: %q", findings)
	}

	// What follows is judged alone.
	mark := cluster.Mark()
	send(t, connect(t, cluster), "kept")
	cluster.RequireValidSince(mark)
}

func connect(t *testing.T, cluster *kcluster.Cluster) *kgo.Client {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(cluster.Bootstrap()...),
		kgo.ConsumeTopics("orders"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.MetadataMinAge(20*time.Millisecond),
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func send(t *testing.T, client *kgo.Client, value string) {
	t.Helper()
	record := &kgo.Record{Topic: "orders", Value: []byte(value)}
	if err := client.ProduceSync(context.Background(), record).FirstErr(); err != nil {
		t.Fatal(err)
	}
}
