package acl

import (
	"go.yaml.in/yaml/v4"

	"rocketd/protocol"
)

// Credentials sign requests to other servers, as the RPC hook of a stock client does. The secret can't be read from them.
type Credentials struct {
	AccessKey string
	key       signingKey
}

// ReadCredentials reads a file like the tools.yml of mqadmin: accessKey and secretKey. The error never holds a secret.
func ReadCredentials(path string) (*Credentials, error) {
	data, err := read(path)
	if err != nil {
		return nil, err
	}
	f := &file{path: path}
	var document yaml.Node
	if err := yaml.Unmarshal(data, &document); err != nil {
		return nil, syntaxError(path, data, err)
	}
	if document.Kind == 0 || len(document.Content) == 0 || follow(document.Content[0]).Kind != yaml.MappingNode {
		return nil, &FileError{Place{Path: path}, "the file must be a mapping of accessKey and secretKey"}
	}
	var accessKey, secret string
	for key, into := range map[string]*string{keyAccessKey: &accessKey, keySecretKey: &secret} {
		if n := get(follow(document.Content[0]), key); n != nil {
			if *into, err = f.text(n, key); err != nil {
				return nil, err
			}
		}
	}
	if err := checkKeys(accessKey, secret); err != nil {
		return nil, &FileError{Place{Path: path}, err.Error()}
	}
	return &Credentials{accessKey, newSigningKey(secret)}, nil
}

// Sign signs a request that is to be sent: its typed header becomes ext fields, behind which stand access key and signature.
func (c *Credentials) Sign(cmd *protocol.Command) {
	if cmd.Header != nil {
		cmd.Fields = protocol.PlanFor(cmd.Header).Texts(cmd.Fields, cmd.Header)
		cmd.Header = nil
	}
	cmd.SetField(fieldAccessKey, c.AccessKey)
	s := signers.Get().(*signer)
	defer s.release()
	cmd.SetField(fieldSignature, string(s.sign(&c.key, cmd, s.order(cmd), true)))
}
