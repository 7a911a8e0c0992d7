import type { PatchClient } from '../../schemas/client.ts'
import { IdentityError, paramError, permError } from '../errors.ts'
import { type ClientRecord, isVouchedFor } from '../records/client.ts'
import type { Actor } from '../roles.ts'
import type { Change } from '../store/port.ts'
import { type ChangeParts, checkDocumentChange, toClientChange } from './client-fields.ts'
import { checkMayGiveKeys } from './client-keys.ts'
import type { Decision } from './happenings.ts'
import { isOwnedBy } from './owner.ts'
import { checkClientMatch, maySeeSecret, toView } from './show-client.ts'
import { checkMayManage } from './stored-clients.ts'
import { isConfidential } from './token-auth.ts'

export interface PatchParts extends ChangeParts {
  /** Makes a new readable secret of a client, sealed. */
  createSecret: (clientId: string) => string
  /** The entity tag of what the caller has read. Absent: the caller does not ask whether it has changed. */
  ifMatch?: string | undefined
}

/** Replaces the readable secret, and removes the named ones and the keys: somebody has them who should not. */
export function renewCredentials (record: ClientRecord, createSecret: PatchParts['createSecret']): Change<ClientRecord> & { unset: ('secrets' | 'keys')[] } {
  const unset = (['secrets', 'keys'] as const).filter((field) => record[field] !== undefined)
  return record.secret === undefined ? { unset } : { set: { secret: createSecret(record.id) }, unset }
}

/** @throws ErrPerm */
export function checkMayTakeOver ({ isAdmin, isUser = true }: Actor): void {
  if (!isAdmin || !isUser) throw permError('take_over', 'only an admin may take a client over')
}

/** @throws ErrParam for a client without a readable secret, or one that this change makes public */
function checkHasSecret (record: ClientRecord, { set, unset }: ReturnType<typeof toClientChange>): void {
  if (record.secret === undefined || unset.includes('secret')) {
    throw paramError('regen_secret', isConfidential({ ...record, ...set }) ? 'the client has no readable secret' : 'a public client has no secret')
  }
}

/** Whether somebody knows the secrets of a client who should not: it has a new owner, or the operator begins to vouch for it. */
function isCompromised (record: ClientRecord, set: Partial<ClientRecord>, isTaken: boolean, actor: Actor): boolean {
  const isNew = !isVouchedFor(record) && isVouchedFor({ ...record, ...set })
  const isKnown = !isOwnedBy(record, actor.user_id) || actor.isUser === false
  return isConfidential({ ...record, ...set }) && (isTaken || (isNew && isKnown))
}

/**
 * Refuses what would make a credential with a personal access token, beside the fields of the access table: codes of people who are not
 * asked for their consent would go to another address, or the client would get a new secret.
 * @throws ErrPerm
 */
function checkPersonal ({ first_party }: ClientRecord, { redirectUris }: NonNullable<PatchClient['data']>, isRenewed: boolean): void {
  if (first_party === true && redirectUris !== undefined) {
    throw permError('redirectUris', 'a personal access token may not change those of a first-party client')
  }
  if (isRenewed) throw permError('scopes', "a personal access token may not add one with which the operator vouches for somebody else's client")
}

/**
 * What a patch changes of a client.
 * @throws ErrParam, ErrPerm
 */
export function decidePatch (record: ClientRecord, body: PatchClient, { createSecret, ifMatch, ...parts }: PatchParts): Decision {
  const { actor } = parts
  const { data = {}, regen_secret: renews = false, take_over: takesOver = false } = body
  checkMayManage(record, actor)
  checkClientMatch(ifMatch, record, data)
  if (record.document !== undefined) checkDocumentChange(body)
  if (data.jwks !== undefined) checkMayGiveKeys(record, actor, (client) => maySeeSecret(toView(actor), client))
  const given = toClientChange(data, record, parts)
  const isTaken = takesOver && !isOwnedBy(record, actor.user_id)
  if (takesOver && !isTaken) throw paramError('take_over', 'the caller owns the client already')
  const set = isTaken ? { ...given.set, userId: actor.user_id } : given.set
  if (renews) checkHasSecret(record, { ...given, set })
  if (Object.keys(set).length === 0 && given.unset.length === 0 && !renews) throw new IdentityError('ErrParam', 'body: must contain a change')
  const isRenewed = isCompromised(record, set, isTaken, actor)
  if (actor.isPersonal === true) checkPersonal(record, data, isRenewed)
  const renewed = isRenewed ? renewCredentials(record, createSecret) : { unset: [] }
  const isEnded = isRenewed || isTaken || renews || given.increment !== undefined
  return {
    // Keys that this very change gives the client are nobody else's.
    unset: [...new Set([...given.unset, ...renewed.unset.filter((field) => !(field in set))])],
    set: { ...set, ...renewed.set, ...(renews && { secret: createSecret(record.id) }) },
    increment: isEnded ? { epoch: 1 } : undefined,
    changed: [...Object.keys(data).filter((field) => field !== 'jwks'), ...(isTaken ? ['userId'] : [])]
  }
}
