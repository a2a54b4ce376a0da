package main

import (
	"crypto/tls"
	"crypto/x509"
	"os"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// loginOptions has the options of TLS, if KAFKA_CA names a file, and of SASL, if KAFKA_MECHANISM names
// a mechanism.
func loginOptions() ([]kgo.Opt, error) {
	var options []kgo.Opt
	if path := os.Getenv("KAFKA_CA"); path != "" {
		config, err := tlsConfig(path, os.Getenv("KAFKA_CERTIFICATE"))
		if err != nil {
			return nil, err
		}
		options = append(options, kgo.DialTLSConfig(config))
	}
	if mechanism := mechanism(os.Getenv("KAFKA_MECHANISM")); mechanism != nil {
		options = append(options, kgo.SASL(mechanism))
	}
	return options, nil
}

// tlsConfig trusts one CA, and has the client's certificate and key, which are in one file.
func tlsConfig(ca, certificate string) (*tls.Config, error) {
	pem, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AppendCertsFromPEM(pem)
	if certificate != "" {
		pair, err := tls.LoadX509KeyPair(certificate, certificate)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// mechanism logs in as KAFKA_USER; KAFKA_PASSWORD is a token for OAUTHBEARER.
func mechanism(name string) sasl.Mechanism {
	user, password := os.Getenv("KAFKA_USER"), os.Getenv("KAFKA_PASSWORD")
	switch name {
	case "PLAIN":
		return plain.Auth{User: user, Pass: password}.AsMechanism()
	case "SCRAM-SHA-256":
		return scram.Auth{User: user, Pass: password}.AsSha256Mechanism()
	case "SCRAM-SHA-512":
		return scram.Auth{User: user, Pass: password}.AsSha512Mechanism()
	case "OAUTHBEARER":
		return oauth.Auth{Token: password}.AsMechanism()
	}
	return nil
}
