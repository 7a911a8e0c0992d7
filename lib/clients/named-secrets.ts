import type { ClientSecret, CreateSecret } from '../../schemas/client.ts'
import { checkTimestamp } from '../checks.ts'
import { type Clock, toTimestamp } from '../clock.ts'
import { hashToken } from '../crypto/random-token.ts'
import { defined } from '../defined.ts'
import { IdentityError, paramError, permError } from '../errors.ts'
import { randomText } from '../ids.ts'
import { checkName } from '../names.ts'
import { type ClientRecord, type NamedSecret, FIRST } from '../records/client.ts'
import type { Actor } from '../roles.ts'
import type { Change, MaybePromise } from '../store/port.ts'
import { createPrefixed } from '../crypto/prefixed-secret.ts'
import type { SecretEnds } from './secret-ends.ts'
import type { CredentialUses } from '../tokens/uses.ts'
import { findTokenAuth, isConfidential } from './token-auth.ts'

/** Named secrets of a client, beside the readable one. */
const MOST = 5

/** Characters of the id of a secret. */
const ID_LENGTH = 16

/** What the operations on credentials of clients need. */
export interface CredentialParts {
  now: Clock
  uses: Pick<CredentialUses, 'read'>
  ends: Pick<SecretEnds, 'add' | 'forget'>
  /** Reads a client that the actor may manage. */
  requireManaged (clientId: string, actor: Actor): Promise<ClientRecord>
  /** Changes such a client. */
  change (clientId: string, actor: Actor, decide: (record: ClientRecord) => MaybePromise<Change<ClientRecord>>): Promise<void>
  /** Whether the actor may see a readable secret of this client. */
  maySeeSecret (record: ClientRecord, actor: Actor): boolean
}

/** The ids of a client's secrets, the readable one first. */
export const listSecretIds = ({ secret, secrets = [] }: Pick<ClientRecord, 'secret' | 'secrets'>): string[] =>
  [...(secret === undefined ? [] : [FIRST]), ...secrets.map(({ id }) => id)]

/** The entity tag of a client's secrets, for If-Match. */
const toTag = (record: ClientRecord): string => `"${hashToken(listSecretIds(record).join(' ')).slice(0, 16)}"`

/** @throws ErrParam with 412 when the secrets have changed since the caller listed them */
function checkMatch (record: ClientRecord, ifMatch: string | undefined): void {
  if (ifMatch === undefined || ifMatch.trim() === '*') return
  if (ifMatch.split(',').some((tag) => tag.trim() === toTag(record))) return
  throw new IdentityError('ErrParam', 'If-Match: the secrets of the client have changed', { statusCode: 412 })
}

/** The secrets that a change adds and removes, by their ids. The readable one may also be replaced, which is neither. */
export function compareSecrets (record: ClientRecord, { set = {}, unset = [] }: Change<ClientRecord>): { added: string[], removed: string[] } {
  const before = listSecretIds(record)
  const { secret, secrets } = { ...record, ...set }
  const after = listSecretIds({ secret: unset.includes('secret') ? undefined : secret, secrets: unset.includes('secrets') ? undefined : secrets })
  return { added: after.filter((id) => id !== FIRST && !before.includes(id)), removed: before.filter((id) => !after.includes(id)) }
}

/** Named secrets of clients. They are shown once, and stored as hashes. The readable secret is among them, as `first`. */
export function createNamedSecrets ({ now, uses, ends, requireManaged, change, maySeeSecret }: CredentialParts) {
  return {
    /**
     * Adds a secret (`POST /client/{clientId}/secret`). The others go on.
     * @returns the secret, which is not shown again
     * @throws ErrParam, ErrLimit, ErrNotFound; ErrPerm also for an actor who may not see the secrets of the client
     */
    async addSecret (clientId: string, { data: { name, expiresAt } }: CreateSecret, actor: Actor, ifMatch?: string): Promise<{ id: string, secret: string }> {
      if (name.trim() === '') throw paramError('name', 'must not be empty')
      const created_at = toTimestamp(now())
      const expires_at = expiresAt === undefined ? undefined : checkTimestamp('expiresAt', expiresAt)
      if (expires_at !== undefined && expires_at <= created_at) throw paramError('expiresAt', 'must be in the future')
      const [id, secret] = [randomText(ID_LENGTH), createPrefixed('secret')]
      const added: NamedSecret = defined({ id, name: checkName('name', name), hash: hashToken(secret), last4: secret.slice(-4), created_at, expires_at })
      const decide = async (record: ClientRecord): Promise<Change<ClientRecord>> => {
        if (!maySeeSecret(record, actor)) throw permError('clientId', 'the caller may not see secrets of this client')
        if (!isConfidential(record)) throw paramError('clientId', 'must be a confidential client: set tokenAuth first')
        if (record.document !== undefined) throw paramError('clientId', 'must not be a client from a document')
        checkMatch(record, ifMatch)
        const { secrets = [] } = record
        if (secrets.length >= MOST) throw new IdentityError('ErrLimit', `secrets: a client may have at most ${MOST}`)
        // Before the secret exists: a crash between the two leaves a notice about no secret, which tells nobody.
        await ends.add(clientId, added)
        return { set: { secrets: [...secrets, added] } }
      }
      try {
        await change(clientId, actor, decide)
      } catch (error) {
        // After any other error the secret may exist.
        if (expires_at !== undefined && error instanceof IdentityError && error.statusCode < 500) await ends.forget([id])
        throw error
      }
      return { id, secret }
    },

    /** @throws ErrNotFound, ErrPerm */
    async listSecrets (clientId: string, actor: Actor): Promise<{ secrets: ClientSecret[], tag: string, mayAdd: boolean }> {
      const record = await requireManaged(clientId, actor)
      const used = await uses.read(record.id)
      const show = (id: string, secret: Omit<ClientSecret, 'id'>): ClientSecret => ({ id, ...secret, lastUsedAt: used[id]?.time })
      return {
        secrets: [
          ...(record.secret === undefined ? [] : [show(FIRST, { name: FIRST })]),
          ...(record.secrets ?? []).map(({ id, name, last4, created_at: createdAt, expires_at: expiresAt }) =>
            show(id, { name, last4, createdAt, expiresAt }))
        ],
        tag: toTag(record),
        mayAdd: (record.secrets ?? []).length < MOST
      }
    },

    /**
     * Removes a secret. The access tokens that it got end. The client stays confidential.
     * @throws ErrNotFound, ErrPerm
     */
    async removeSecret (clientId: string, secretId: string, actor: Actor, ifMatch?: string): Promise<void> {
      await change(clientId, actor, (record) => {
        checkMatch(record, ifMatch)
        if (!listSecretIds(record).includes(secretId)) throw new IdentityError('ErrNotFound', 'secretId: the client has no such secret')
        // Without the secret, only this field says that the client is confidential.
        const set = { tokenAuth: findTokenAuth(record) }
        if (secretId === FIRST) return { set, unset: ['secret'] }
        const secrets = (record.secrets ?? []).filter(({ id }) => id !== secretId)
        return secrets.length === 0 ? { set, unset: ['secrets'] } : { set: { ...set, secrets } }
      })
    }
  }
}
