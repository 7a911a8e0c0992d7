import { type Html, html } from '../html.ts'
import type { ClientParts } from './client-view.ts'
import { act, code, entries, field, part, plain, time } from './parts.ts'

/** The secrets of a client, without the secrets themselves, and the form that adds one. */
export function describeSecrets ({ view, page: { secrets, secretsTag, client, acts, refused, tokenAuth }, context, to }: ClientParts): Html | false {
  if (secrets === undefined || client.document !== undefined || (tokenAuth === 'none' && secrets.length === 0)) return false
  const { texts: { console: { clients: own, person } } } = context
  const typed = (name: string) => refused?.action === 'add-secret' ? refused.typed[name] : undefined
  const list = secrets.map(({ id, name, last4, createdAt, expiresAt, lastUsedAt }) => {
    const label = last4 === undefined ? own.readable : name
    return {
      head: html`<strong>${plain(label)}</strong>${last4 !== undefined && html` ${code(`\u2026${last4}`)}`}`,
      more: [
        createdAt !== undefined && person.added({ time: time(createdAt, context) }),
        expiresAt !== undefined && own.ends({ time: time(expiresAt, context) }),
        lastUsedAt === undefined ? own.neverUsed : person.lastUsed({ time: time(lastUsedAt, context) })
      ],
      action: acts.includes('remove-secret') && act(view, {
        to,
        action: 'remove-secret',
        label: own.remove,
        says: own.removeSecretSays,
        hiddens: { secret: id, secretsMatch: secretsTag },
        of: label,
        isDangerous: true
      })
    }
  })
  const fields = html`${field({
    id: 'secret-name', name: 'secretName', label: own.whatFor, hint: own.whatForHint, isRequired: true, maxLength: 256, value: typed('secretName')
  })}${field({
    id: 'secret-end', name: 'secretEnd', label: own.lastDay, hint: own.secretEndHint, type: 'date', value: typed('secretEnd')
  })}`
  return part('secrets', own.secrets, html`${entries('secrets', list, own.secretsNone)}${acts.includes('add-secret') && act(view, {
    to, action: 'add-secret', label: own.addSecret, says: own.addSecretSays, hiddens: { secretsMatch: secretsTag }, fields, isOpen: refused?.action === 'add-secret'
  })}`)
}

/** The public keys of a client. */
export function describeKeys ({ page: { client: { jwks } }, context: { texts: { console: { clients: own } } } }: ClientParts): Html | false {
  if (jwks === undefined || jwks.keys.length === 0) return false
  const text = (value: unknown) => typeof value === 'string' ? value : undefined
  return part('keys', own.keys, entries('keys', jwks.keys.map((key: Record<string, unknown>) => {
    const kinds = [key.alg, key.kty, key.crv].flatMap((value) => text(value) ?? [])
    return { head: code(text(key.kid) ?? ''), more: [plain(kinds.join(' '))] }
  }), own.keysNone))
}

/** The service tokens of a client, without the tokens themselves, and the form that makes one. */
export function describeTokens ({ view, page: { tokens, client, acts, refused, tokenAuth }, context, to }: ClientParts): Html | false {
  if (tokens === undefined || client.document !== undefined || (tokenAuth === 'none' && tokens.length === 0)) return false
  const { texts: { console: { clients: own, person } } } = context
  const typed = (name: string) => refused?.action === 'add-token' ? refused.typed[name] : undefined
  const list = tokens.map(({ id, name, last4, scopes, resource, createdAt, expiresAt, lastUsedAt, lastUsedFrom }) => ({
    head: html`<strong>${plain(name)}</strong> ${code(`\u2026${last4}`)}`,
    more: [
      scopes.length > 0 && html`${own.scopes}: ${scopes.map((scope) => html`${code(scope)} `)}`,
      resource !== undefined && html`${own.resource}: ${code(resource)}`,
      person.added({ time: time(createdAt, context) }),
      own.ends({ time: time(expiresAt, context) }),
      lastUsedAt === undefined
        ? own.neverUsed
        : html`${person.lastUsed({ time: time(lastUsedAt, context) })}${lastUsedFrom !== undefined && html` ${plain(lastUsedFrom)}`}`
    ],
    action: acts.includes('remove-token') && act(view, {
      to, action: 'remove-token', label: person.end, says: own.endTokenSays, hiddens: { token: id }, of: name, isDangerous: true
    })
  }))
  const fields = html`${field({
    id: 'token-name', name: 'tokenName', label: own.whatFor, hint: own.whatForHint, isRequired: true, maxLength: 256, value: typed('tokenName')
  })}${field({
    id: 'token-scopes', name: 'tokenScopes', label: own.scopes, hint: own.tokenScopesHint, rows: 3, value: typed('tokenScopes')
  })}${field({
    id: 'token-resource', name: 'tokenResource', label: own.resource, hint: own.tokenResourceHint, maxLength: 2048, value: typed('tokenResource')
  })}${field({ id: 'token-end', name: 'tokenEnd', label: own.lastDay, hint: own.tokenEndHint, type: 'date', value: typed('tokenEnd') })}`
  return part('tokens', own.tokens, html`${entries('tokens', list, own.tokensNone)}${acts.includes('add-token') && act(view, {
    to, action: 'add-token', label: own.addToken, says: own.addTokenSays, fields, isOpen: refused?.action === 'add-token'
  })}`)
}
