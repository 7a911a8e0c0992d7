import type { Base } from '../base.ts'
import { changeRecord } from '../change-record.ts'
import { findDocumentUrl } from '../client-documents/find-url.ts'
import { DOCUMENT_PREFIX } from '../client-documents/ids.ts'
import { toTimestamp } from '../clock.ts'
import { IdentityError, permError } from '../errors.ts'
import type { Recorder } from '../events/recorder.ts'
import { type ClientRecord, isVouchedFor, FIRST, hasCredential, withClientWords } from '../records/client.ts'
import type { Actor } from '../roles.ts'
import type { MaybePromise } from '../store/port.ts'
import { type Decision, listHappenings } from './happenings.ts'
import { listSecretIds } from './named-secrets.ts'
import { isOwnedBy } from './owner.ts'
import type { SecretEnds } from './secret-ends.ts'
import type { CredentialUses } from '../tokens/uses.ts'

export interface StoredClientParts extends Base {
  /** Deletes the revoked tokens of a client, without waiting for that. Of the epochs before this one, if it is given. */
  tokens: { deleteOfClient (client_id: string, epoch?: number): void }
  uses: Pick<CredentialUses, 'forget'>
  ends: Pick<SecretEnds, 'forget'>
}

export function notFound (): IdentityError {
  return new IdentityError('ErrNotFound', 'clientId: no such client')
}

/** @throws ErrNotFound for another user's client, as for a missing one, unless the actor is an admin */
export function checkMaySee (record: ClientRecord, actor: Actor): void {
  if (!actor.isAdmin && !isOwnedBy(record, actor.user_id)) throw notFound()
}

/** @throws ErrPerm for a client that the operator vouches for, unless the actor is an admin */
export function checkMayManage (record: ClientRecord, actor: Actor): void {
  if (!actor.isAdmin && isVouchedFor(record)) {
    throw permError('clientId', 'only an admin may manage a client that the operator vouches for')
  }
}

/** The ids of what a client may authenticate with: its secrets and keys. */
const listCredentialIds = (record: ClientRecord): string[] => [...listSecretIds(record), ...(record.keys ?? []).map(({ id }) => id)]

/** Reads, changes and removes the stored clients, with what depends on them. */
export function createStoredClients ({ store, now, recorder, tokens, uses, ends }: StoredClientParts) {
  const clients = store.collection<ClientRecord>('clients')
  const documents = store.collection('documents')
  const logos = store.collection('client_logos')

  /** The id of a client that is also addressed by the id of its document, which is not longer than a path may be. @throws ErrNotFound */
  async function toClientId (id: string, { isAdmin }: Actor): Promise<string> {
    if (!id.startsWith(DOCUMENT_PREFIX)) return id
    const url = await findDocumentUrl(store, id.slice(DOCUMENT_PREFIX.length), isAdmin)
    if (url === null) throw notFound()
    return url
  }

  /** Reads a client that the actor may see. @throws ErrNotFound */
  async function requireRecord (clientId: string, actor: Actor): Promise<ClientRecord> {
    const record = await clients.get(await toClientId(clientId, actor))
    if (record === null) throw notFound()
    checkMaySee(record, actor)
    return record
  }

  return {
    clients,
    toClientId,
    requireRecord,

    /** Reads a client that the actor may manage. @throws ErrNotFound, ErrPerm */
    async requireManaged (clientId: string, actor: Actor): Promise<ClientRecord> {
      const record = await requireRecord(clientId, actor)
      checkMayManage(record, actor)
      return record
    },

    /** Changes a client that the actor may see, and forgets the secrets and keys that it loses. Nothing is written for null from `decide`. */
    async change (clientId: string, actor: Actor, decide: (record: ClientRecord) => MaybePromise<Decision | null>): Promise<ClientRecord> {
      let isEnded = false
      let previous: string[] = []
      const written = await changeRecord({ collection: clients, recorder, what: 'the client', notFound }, clientId, async (record) => {
        checkMaySee(record, actor)
        previous = listCredentialIds(record)
        const decision = await decide(record)
        isEnded = decision?.increment?.epoch !== undefined
        if (decision === null) return null
        const { changed: _changed, set, ...rest } = decision
        return { ...withClientWords(record, { ...rest, set: { ...set, modifiedAt: toTimestamp(now()) } }), happened: listHappenings(record, decision) }
      })
      if (isEnded) tokens.deleteOfClient(clientId, written.epoch)
      const lost = previous.filter((id) => !hasCredential(written, id))
      await Promise.all([ends.forget(lost.filter((id) => id !== FIRST)), ...lost.map((id) => uses.forget(clientId, id))])
      return written
    },

    /**
     * Removes a client, with all that belongs to it.
     * @param permit throws unless the client may be removed as it is by then
     * @returns false when the client was gone
     */
    async remove ({ id, userId, document, secrets = [] }: ClientRecord, permit?: Parameters<Recorder['remove']>[3]): Promise<boolean> {
      if (!await recorder.remove('clients', id, { type: 'client.deleted', id, user_id: userId ?? null }, permit)) return false
      if (document !== undefined) await documents.delete(document.id)
      await Promise.all([logos.delete(id), uses.forget(id), ends.forget(secrets.map((secret) => secret.id))])
      tokens.deleteOfClient(id)
      return true
    }
  }
}

export type StoredClients = ReturnType<typeof createStoredClients>
