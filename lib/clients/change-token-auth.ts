import type { PatchClient } from '../../schemas/client.ts'
import { checkTimestamp } from '../checks.ts'
import { toTimestamp } from '../clock.ts'
import { paramError, permError } from '../errors.ts'
import type { ClientRecord } from '../records/client.ts'
import type { Actor } from '../roles.ts'
import type { Change } from '../store/port.ts'
import { findTokenAuth } from './token-auth.ts'

/** Milliseconds that the previous way to authenticate may pass after a change. */
const PREVIOUS_MAX = 30 * 24 * 60 * 60 * 1000

type Wanted = Pick<NonNullable<PatchClient['data']>, 'tokenAuth' | 'former'>

type Before = Pick<ClientRecord, 'secret'> & Partial<ClientRecord>

/** @throws ErrParam */
function checkUntil (text: string, time: string): string {
  const until = checkTimestamp('former.until', text)
  if (until <= time) throw paramError('former.until', 'must be in the future')
  if (until > toTimestamp(Date.parse(time) + PREVIOUS_MAX)) throw paramError('former.until', 'must be at most 30 days ahead')
  return until
}

/** The change to a public client. It loses its secrets and keys, and its tokens are revoked. Throws ErrParam, ErrPerm. */
function changeToNone (before: Before, { isAdmin }: Actor): Change<ClientRecord> {
  if (before.id === undefined) {
    if (before.secret !== undefined) throw paramError('credentials', 'must not be true with tokenAuth none')
    return { set: { tokenAuth: 'none' } }
  }
  if (!isAdmin) throw permError('tokenAuth', 'only an admin may make a client public')
  if (Object.keys(before.roles ?? {}).length > 0) throw paramError('tokenAuth', 'must not be none for a client with roles')
  return { set: { tokenAuth: 'none' }, unset: ['secret', 'secrets', 'keys', 'former_auth'], increment: { epoch: 1 } }
}

/**
 * The change of how a client authenticates. The grants of a public client are checked with its other fields.
 * @param before the present client, with the keys that the same change gives it; a new one has no id
 * @param time the current time
 * @throws ErrParam, ErrPerm
 */
export function changeTokenAuth ({ tokenAuth, former }: Wanted, before: Before, actor: Actor, time: string): Change<ClientRecord> {
  if (tokenAuth === undefined) {
    if (former !== undefined) throw paramError('former', 'must come with tokenAuth')
    return {}
  }
  const present = findTokenAuth(before)
  if (former !== undefined) {
    if (tokenAuth === present) throw paramError('former', 'must come with a change of tokenAuth')
    if (tokenAuth === 'none') throw paramError('former', 'must be absent for tokenAuth none')
    if (present === 'none') throw paramError('former', 'must be absent, because the previous tokenAuth is none')
  }
  if (tokenAuth === 'private_key_jwt' && before.keys === undefined) throw paramError('tokenAuth', 'must not be private_key_jwt, because the client has no keys')
  if (tokenAuth === 'none' && (present !== 'none' || before.id === undefined)) return changeToNone(before, actor)
  if (former === undefined) return { set: { tokenAuth }, unset: ['former_auth'] }
  return { set: { tokenAuth, former_auth: { method: present as 'secret', until: checkUntil(former.until, time) } } }
}
