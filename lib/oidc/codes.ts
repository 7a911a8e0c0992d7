import { toTimestamp } from '../clock.ts'
import { defined } from '../defined.ts'
import type { GrantRecord, Revocable, TokenRecord } from '../records/token.ts'
import type { Json } from '../store/port.ts'
import { keepAddress } from '../events/address.ts'
import { describeDevice } from '../device.ts'
import type { Subject } from '../tokens/tokens.ts'
import { hashToken } from '../crypto/random-token.ts'
import { rememberSession, requireClient, toOurs } from './context.ts'
import { isRegisteredUri } from '../clients/registered-uris.ts'
import { endGrant } from './grants.ts'
import { LIFETIMES, type AdapterParts, type ModelAdapter, type Payload, toPayload, toStored } from './model-adapter.ts'
import { splitScopes } from './scopes.ts'
import { findIdentityProof } from '../proofs.ts'
import { requireStrength } from './judge.ts'
import { findStoredSession, requireProofs, requireUserEpoch } from './sign-in-sessions.ts'

/** Seconds for which an expired device code is answered `expired_token` rather than as unknown (RFC 8628, 3.5). */
const EXPIRED_DEVICE_CODE = 600

/** Seconds that a device waits between two polls (RFC 8628, 3.2). */
export const POLL_INTERVAL = 5

/** Milliseconds after a poll in which another one is too early. It is a second less than the interval, to tolerate the device's clock. */
const POLL_PAUSE = (POLL_INTERVAL - 1) * 1000

interface DeviceRecord extends Revocable {
  client_id: string
  client_epoch: number
  created_at: string
  consumed: boolean
  /** Whether a user has approved or refused it. The first decision counts. */
  decided: boolean
  /** The time of the last poll that was not too fast; 1970 before the first. */
  polled_at: string
  /** The HMAC of the user code, see KeyRing. */
  user_code: string
  /** Counts the writes of `sealed`. */
  revision?: number
  /** The payload, sealed: it holds both codes, which oidc-provider needs again when the user has signed in. */
  sealed: string
}

/** The user who signed in for this request, and the client it is for. */
function findSubject ({ getContext, errors }: AdapterParts, payload: Payload): Subject {
  const ctx = getContext()
  const { client } = toOurs(ctx)
  if (ctx === undefined || client === undefined) throw new errors.InvalidRequest('no authorization is in progress')
  return {
    user_id: payload.accountId as string,
    client_id: client.clientId,
    user_epoch: requireUserEpoch(ctx),
    client_epoch: client.epoch
  }
}

/**
 * Stores the grant of an authorization.
 * @param ttl seconds: the lifetime of the code plus that of the first access token
 */
async function writeGrant (parts: AdapterParts, payload: Payload, ttl: number): Promise<Subject> {
  const subject = findSubject(parts, payload)
  const ctx = parts.getContext()
  if (ctx === undefined) throw new Error('a grant is written in a request')
  const life = parts.times.lifetime(ttl)
  const scopes = splitScopes(payload.scope)
  const bound = !scopes.includes('offline_access')
  const identity = findIdentityProof(requireProofs(ctx))
  const { accountId, clientId, openid, resources, rejected } = toOurs(ctx).grant!
  await parts.store.collection<GrantRecord>('grants').insert(defined({
    id: payload.grantId as string,
    ...subject,
    ...life,
    scopes,
    auth: await requireStrength(ctx),
    last_used_at: life.created_at,
    generation: 0,
    refreshed_at: [],
    session_uid: payload.sessionUid as string,
    bound,
    upstream_proof: identity,
    upstream_sid: identity?.session,
    place: { ...describeDevice(ctx.get('user-agent'), keepAddress(ctx.ip, parts.addresses)) },
    payload: JSON.parse(JSON.stringify({ kind: 'Grant', accountId, clientId, openid, resources, rejected })) as Payload
  }))
  const session = findStoredSession(ctx)
  // A sign-out deletes the session before it looks for bound grants: either it finds this grant, or this check finds no session.
  const isSignedOut = bound && session !== undefined && await parts.tokens.find('sign_in_sessions', session.id) === null
  // The same for an end that another provider has told of.
  if (isSignedOut || await parts.standing?.isEndedFor(subject.user_id, identity) === true) {
    await parts.tokens.endGrant(payload.grantId as string)
    throw new parts.errors.AccessDenied('the sign-in has ended')
  }
  return subject
}

/** Authorization codes. */
export function adaptCodes (parts: AdapterParts): ModelAdapter {
  const { store, tokens, times, errors, getContext } = parts
  const codes = store.collection<TokenRecord>('authorization_codes')
  return {
    async upsert (id, payload, expiresIn) {
      // Signing in and consenting may have taken an hour, and the URI may have been removed from the client meanwhile.
      if (!isRegisteredUri(requireClient(getContext()), payload.redirectUri)) throw new errors.InvalidRedirectUri()
      const subject = await writeGrant(parts, payload, LIFETIMES.code + parts.accessTtl)
      await codes.insert({
        id: hashToken(id),
        ...subject,
        ...times.lifetime(expiresIn),
        grant_id: payload.grantId as string,
        consumed: false,
        payload: toStored(payload)
      })
    },
    async find (id) {
      const found = await tokens.find<TokenRecord>('authorization_codes', hashToken(id))
      if (found === null) return undefined
      rememberSession(getContext(), found)
      return toPayload(found.record, id, times)
    },
    async consume (id) {
      if (!await tokens.spend('authorization_codes', hashToken(id))) throw new errors.InvalidGrant('the code was used before')
    },
    async destroy (id) {
      await codes.delete(hashToken(id))
    },
    revokeByGrantId: (grantId) => endGrant(tokens, grantId)
  }
}

/** Device codes (RFC 8628): the device polls with one code, the user types the other. */
export function adaptDeviceCodes (parts: AdapterParts): ModelAdapter {
  const { store, tokens, box, times, keys, errors, getContext } = parts
  const codes = store.collection<DeviceRecord>('device_codes')

  async function find (id: string): Promise<Payload | undefined> {
    const record = (await tokens.find<DeviceRecord>('device_codes', id))?.record
    if (record === undefined) return undefined
    const { jti, ...payload } = JSON.parse(box.open(record.sealed, record.id)) as Payload & { jti: string }
    const found = toPayload({ ...record, payload }, jti, times)
    return { ...found, exp: found.exp as number - EXPIRED_DEVICE_CODE }
  }

  /**
   * Refuses a poll that comes too early (RFC 8628, 3.5). Of several concurrent polls one is answered. Once the user has decided,
   * every poll is answered.
   */
  async function limitPolls (id: string): Promise<void> {
    const record = await codes.get(id)
    if (record === null || record.decided) return
    const before = { polled_at: toTimestamp(times.now() - POLL_PAUSE) }
    const isInTime = record.polled_at < before.polled_at &&
      await codes.update(id, { set: { polled_at: toTimestamp(times.now()) } }, { equal: { decided: false }, before }) !== null
    if (!isInTime) throw new errors.SlowDown()
  }

  /**
   * Records the user's decision. Before it there is nothing to record: oidc-provider would mark a code that somebody has entered, and accept it
   * from nobody again, although the page may have been closed. The client's epoch stays that of the device's request; the user's epoch is that
   * of the sign-in.
   */
  async function decide (record: DeviceRecord, payload: Payload, sealed: string): Promise<void> {
    const refused = payload.error !== undefined
    const approved = payload.accountId !== undefined && !refused
    const grant_id = payload.grantId as string
    if (!approved && !refused) return
    let approval: Record<string, Json> = {}
    if (approved && !record.decided) {
      const { user_id, user_epoch } = await writeGrant(parts, payload, LIFETIMES.deviceCode + parts.accessTtl)
      approval = { user_id, user_epoch, grant_id }
    }
    const set = { sealed, decided: approved || refused, ...approval }
    if (await codes.update(record.id, { set, increment: { revision: 1 } }, { equal: { decided: false } }) !== null) return
    if ('grant_id' in approval) await tokens.endGrant(grant_id)
    // The name of oidc-provider's own error for this; views.ts has the text for it.
    throw Object.assign(new errors.InvalidRequest('the code was used before'), { name: 'AlreadyUsedError' })
  }

  return {
    async upsert (id, payload, expiresIn) {
      const key = hashToken(id)
      const sealed = box.seal(JSON.stringify({ ...payload, jti: id }), key)
      const record = await codes.get(key)
      if (record !== null) {
        await decide(record, payload, sealed)
        return
      }
      const client = requireClient(getContext())
      await codes.insert({
        id: key,
        client_id: client.clientId,
        client_epoch: client.epoch,
        ...times.lifetime(expiresIn + EXPIRED_DEVICE_CODE),
        consumed: false,
        decided: false,
        polled_at: toTimestamp(0),
        revision: 0,
        user_code: keys.nameUserCode(payload.userCode as string),
        sealed
      })
    },
    async find (id) {
      if (getContext()?.oidc.route === 'token') await limitPolls(hashToken(id))
      return await find(hashToken(id))
    },
    async findByUserCode (code) {
      const record = await codes.getBy('user_code', keys.nameUserCode(code))
      return record === null ? undefined : await find(record.id)
    },
    async consume (id) {
      if (!await tokens.spend('device_codes', hashToken(id))) throw new errors.InvalidGrant('the code was used before')
    },
    async destroy (id) {
      await codes.delete(hashToken(id))
    },
    revokeByGrantId: (grantId) => endGrant(tokens, grantId)
  }
}
