package mongo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oauth-server/internal/clientcfg"
)

// policiesDoc is the policy set, in one document together with the audit entry of its last change,
// so that both are stored or neither. The entry is copied into the trail right afterwards. Should
// the process die in between, that is made up for before the trail is read or swept, and before the
// next change.
type policiesDoc struct {
	ID      string   `bson:"_id"`
	Version int64    `bson:"version"`
	Set     string   `bson:"set"` // JSON, because its keys need not be valid field names
	Entry   auditDoc `bson:"entry"`
}

const policiesID = "current"

// PolicySet implements [clientcfg.PolicyStore].
func (s *Store) PolicySet(ctx context.Context) (set clientcfg.PolicySet, err error) {
	err = s.do(ctx, "read policies", func(ctx context.Context) error {
		doc, err := s.policiesDoc(ctx, bson.D{})
		if err != nil || doc.Version == 0 {
			return err
		}
		set, err = clientcfg.DecodePolicySet([]byte(doc.Set))
		if err == nil && set.Version != doc.Version {
			err = fmt.Errorf("%w: version %d is marked as %d", clientcfg.ErrUnreadable, set.Version, doc.Version)
		}
		return err
	})
	return set, err
}

// PolicyVersion implements [clientcfg.PolicyStore].
func (s *Store) PolicyVersion(ctx context.Context) (version int64, err error) {
	err = s.do(ctx, "read policy version", func(ctx context.Context) error {
		doc, err := s.policiesDoc(ctx, bson.D{{Key: "version", Value: 1}})
		version = doc.Version
		return err
	})
	return version, err
}

// policiesDoc reads the document, or only the given fields of it. It is zero if there is none.
func (s *Store) policiesDoc(ctx context.Context, fields bson.D) (doc policiesDoc, err error) {
	err = s.policies.FindOne(ctx, byID(policiesID), options.FindOne().SetProjection(fields).SetComment(comment(ctx))).Decode(&doc)
	if errors.Is(err, mongo.ErrNoDocuments) {
		return policiesDoc{}, nil
	}
	return doc, err
}

// ReplacePolicySet implements [clientcfg.PolicyStore].
func (s *Store) ReplacePolicySet(ctx context.Context, next clientcfg.PolicySet, entry clientcfg.AuditEntry) error {
	set, err := json.Marshal(next)
	if err != nil {
		return fmt.Errorf("mongo: encode policies: %w", err)
	}
	audit, err := newAuditDoc(entry)
	if err != nil {
		return err
	}
	doc := policiesDoc{ID: policiesID, Version: next.Version, Set: string(set), Entry: audit}
	return s.do(ctx, "replace policies", func(ctx context.Context) error {
		if err := s.appendPending(ctx); err != nil {
			return err
		}
		if err := s.putPolicies(ctx, &doc); err != nil {
			return err
		}
		// The change is stored, whatever becomes of this: appendPending would repeat it.
		_ = s.appendAudit(ctx, &doc.Entry)
		return nil
	})
}

// putPolicies replaces the document if its version is the one before.
func (s *Store) putPolicies(ctx context.Context, doc *policiesDoc) error {
	var replaced bool
	var err error
	if doc.Version == 1 {
		_, err = s.policies.InsertOne(ctx, doc, options.InsertOne().SetComment(comment(ctx)))
		replaced = err == nil
	} else {
		var result *mongo.UpdateResult
		result, err = s.policies.ReplaceOne(ctx, append(byID(policiesID), bson.E{Key: "version", Value: doc.Version - 1}), doc,
			options.Replace().SetComment(comment(ctx)))
		replaced = err == nil && result.MatchedCount == 1
	}
	if replaced {
		return nil
	}
	return s.whyNotReplaced(ctx, doc, err)
}

// whyNotReplaced finds out whether a change that was not acknowledged is stored; it returns nil if
// it is. The caller's context may have ended, so there is a short timeout instead.
func (s *Store) whyNotReplaced(ctx context.Context, ours *policiesDoc, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), selectionTimeout)
	defer cancel()
	doc, err := s.policiesDoc(ctx, bson.D{{Key: "version", Value: 1}, {Key: "entry", Value: 1}})
	if err != nil {
		return errors.Join(cause, err)
	}
	stored := doc.Entry
	if doc.Version > ours.Version { // changed again since: the entry of our version is in the trail
		if stored, err = s.auditByVersion(ctx, ours.Version); err != nil {
			return errors.Join(cause, err)
		}
	}
	switch {
	case stored.Version == ours.Version && stored.Nonce == ours.Entry.Nonce:
		return nil
	case cause == nil || mongo.IsDuplicateKeyError(cause):
		return fmt.Errorf("%w: version %d is stored, not %d", clientcfg.ErrPolicyConflict, doc.Version, ours.Version-1)
	}
	return cause
}
