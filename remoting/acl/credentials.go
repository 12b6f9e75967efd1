package acl

import (
	"crypto/rand"

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
	accessKey, secret, err := readAccount(path)
	if err != nil {
		return nil, err
	}
	return &Credentials{accessKey, newSigningKey(secret)}, nil
}

// ToolsText is the text of a tools.yml for an access key, with a new secret.
func ToolsText(accessKey string) []byte {
	return []byte("# The account by which mqadmin and brokers sign. Secret: whoever has it may do everything.\n" +
		"accessKey: \"" + accessKey + "\"\nsecretKey: \"" + rand.Text() + "\"\n")
}

// AccountsText is the text of an ACL file whose one account is that of the tools.yml at path, an administrator.
func AccountsText(path string) ([]byte, error) {
	accessKey, secret, err := readAccount(path)
	if err != nil {
		return nil, err
	}
	account := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	change := Change{AccessKey: accessKey, SecretKey: secret, Admin: true}
	change.apply(account)
	account.HeadComment = "# The administrator, and the account by which brokers sign. Give each application an account of its own, such as:\n" +
		"# - accessKey: shopOrders\n#   secretKey: at least seven characters\n#   topicPerms:\n#   - Orders=PUB|SUB\n#   groupPerms:\n#   - OrderReaders=SUB"
	root := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	set(root, keyAccounts, &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: []*yaml.Node{account}})
	return yaml.Dump(root, yaml.WithV3Defaults(), yaml.WithIndent(2), yaml.WithCompactSeqIndent(), yaml.WithLineWidth(-1))
}

// readAccount reads the two keys of a tools.yml.
func readAccount(path string) (accessKey, secret string, err error) {
	data, err := read(path)
	if err != nil {
		return "", "", err
	}
	f := &file{path: path}
	document, err := compose(path, data)
	if err != nil {
		return "", "", err
	}
	if document == nil || follow(document.Content[0]).Kind != yaml.MappingNode {
		return "", "", &FileError{Place{Path: path}, "the file must be a mapping of accessKey and secretKey"}
	}
	for key, into := range map[string]*string{keyAccessKey: &accessKey, keySecretKey: &secret} {
		if n := get(follow(document.Content[0]), key); n != nil {
			if *into, err = f.text(n, key); err != nil {
				return "", "", err
			}
		}
	}
	if err := checkKeys(accessKey, secret); err != nil {
		return "", "", &FileError{Place{Path: path}, err.Error() + whichKey(accessKey, secret)}
	}
	return accessKey, secret, nil
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
