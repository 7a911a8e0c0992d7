import type { DeviceCode, Grant } from 'oidc-provider'
import type { GrantRecord, TokenRecord } from '../records.ts'
import type { Json } from '../store/port.ts'
import { hashToken } from '../tokens/tokens.ts'
import type { OurClient } from './clients.ts'
import { endGrant, toGrantRecord } from './grants.ts'
import { LIFETIMES, type AdapterParts, type ModelAdapter, type Payload, strip } from './parts.ts'
import { splitScopes } from './scopes.ts'
import { requireUserEpoch } from './sessions.ts'
import { findStanding, type Standing } from './standing.ts'

/** Seconds an expired device code is still told from an unknown one (RFC 8628, 3.5: expired_token). */
const EXPIRED_DEVICE_CODE = 600

interface DeviceRecord extends Standing {
  client_id: string
  client_epoch: number
  created_at: string
  grant_id?: string
  consumed: boolean
  /** Whether a user has agreed to it or refused it: of those who try, one does. */
  decided: boolean
  /** The user code's name, see KeyRing. */
  user_code: string
  /** The payload with the codes themselves, which oidc-provider needs again when the user comes: under the secret key. */
  sealed: string
}

/** Who signed in for this request, and for which client: what a code and its grant stand on. */
function findSubject ({ getContext, errors }: AdapterParts, payload: Payload) {
  const ctx = getContext()
  const client = ctx?.oidc.client as unknown as OurClient | undefined
  if (ctx === undefined || client === undefined) throw new errors.InvalidRequest('no authorization is under way')
  return {
    user_id: payload.accountId as string,
    client_id: client.clientId,
    user_epoch: requireUserEpoch(ctx),
    client_epoch: client.epoch
  }
}

/**
 * Codes are taken once: their first use is one conditional write. A second use ends what came of the first
 * (RFC 6749, 4.1.2).
 */
async function consumeOnce (
  { store, errors }: AdapterParts, name: string, id: string, grantId: (record: TokenRecord) => string | undefined
): Promise<void> {
  const codes = store.collection<TokenRecord>(name)
  if (await codes.update(id, { set: { consumed: true } }, { equal: { consumed: false } }) !== null) return
  const record = await codes.get(id)
  const ended = record === null ? undefined : grantId(record)
  if (ended !== undefined) await endGrant(store, ended)
  throw new errors.InvalidGrant('the code was used already')
}

/** Writes the grant that this authorization made, and what it must know of the sign-in. */
function createGrantWriter (parts: AdapterParts, life: number) {
  const grants = parts.store.collection<GrantRecord>('grants')
  return async function writeGrant (payload: Payload): Promise<ReturnType<typeof findSubject>> {
    const subject = findSubject(parts, payload)
    const grant = parts.getContext()?.oidc.grant as Grant
    const scopes = splitScopes(payload.scope)
    const { accountId, clientId, openid, rejected } = grant as unknown as Record<string, Json>
    await grants.insert(toGrantRecord(
      { kind: 'Grant', ...Object.fromEntries(Object.entries({ accountId, clientId, openid, rejected }).filter(([, value]) => value !== undefined)) as Payload },
      payload.grantId as string,
      subject,
      {
        // As long as the code and then the first access token may live; a refresh token moves it on.
        ...parts.times.lifetime(life),
        scopes,
        session_uid: payload.sessionUid as string,
        bound: !scopes.includes('offline_access')
      }
    ))
    return subject
  }
}

/** Authorization codes. */
export function adaptCodes (parts: AdapterParts): ModelAdapter {
  const { store, times } = parts
  const codes = store.collection<TokenRecord>('authorization_codes')
  const writeGrant = createGrantWriter(parts, LIFETIMES.code + parts.accessTtl)
  return {
    async upsert (id, payload, expiresIn) {
      const subject = await writeGrant(payload)
      await codes.insert({
        id: hashToken(id),
        ...subject,
        ...times.lifetime(expiresIn),
        grant_id: payload.grantId as string,
        consumed: false,
        payload: strip(payload)
      })
    },
    async find (id) {
      const found = await findStanding(codes, hashToken(id), times.now())
      if (found === null) return undefined
      const { record } = found
      return {
        ...record.payload,
        jti: id,
        iat: times.toEpoch(record.created_at),
        exp: times.toEpoch(record.expired_at),
        ...(record.consumed === true && { consumed: true })
      }
    },
    consume: (id) => consumeOnce(parts, 'authorization_codes', hashToken(id), ({ grant_id }) => grant_id),
    async destroy (id) {
      await codes.delete(hashToken(id))
    },
    revokeByGrantId: (grantId) => endGrant(store, grantId)
  }
}

/** Device codes (RFC 8628): the device holds one code, the user types the other. */
export function adaptDeviceCodes (parts: AdapterParts): ModelAdapter {
  const { store, box, times, keys, errors, getContext } = parts
  const codes = store.collection<DeviceRecord>('device_codes')
  // In the name that oidc-provider itself uses when it finds this out sooner: views.ts has the words.
  const usedAlready = () => Object.assign(new errors.InvalidRequest('the code was used already'), { name: 'AlreadyUsedError' })
  const writeGrant = createGrantWriter(parts, LIFETIMES.deviceCode + parts.accessTtl)

  function open (record: DeviceRecord): Payload {
    const payload = JSON.parse(box.open(record.sealed, record.id)) as Payload
    return {
      ...payload,
      iat: times.toEpoch(record.created_at),
      exp: times.toEpoch(record.expired_at) - EXPIRED_DEVICE_CODE,
      ...(record.consumed && { consumed: true })
    }
  }

  return {
    async upsert (id, payload, expiresIn) {
      const key = hashToken(id)
      const known = await codes.get(key)
      const failed = payload.error !== undefined
      const approved = payload.accountId !== undefined && !failed
      const client = getContext()?.oidc.client as unknown as OurClient
      const sealed = box.seal(JSON.stringify({ ...payload, jti: id }), key)
      if (known !== null) {
        const subject = approved && !known.decided ? await writeGrant(payload) : undefined
        // The epoch of the client that asked stays; the user's is that of his sign-in.
        const { user_id, user_epoch } = subject ?? {}
        const decision = { sealed, decided: approved || failed, ...(user_id !== undefined && { user_id, user_epoch: user_epoch ?? 0, grant_id: payload.grantId as string }) }
        if (await codes.update(key, { set: decision }, { equal: { decided: false } }) !== null) return
        if (subject !== undefined) await endGrant(store, payload.grantId as string)
        throw usedAlready()
      }
      const { created_at, expired_at } = times.lifetime(expiresIn + EXPIRED_DEVICE_CODE)
      await codes.insert({
        id: key,
        client_id: client.clientId,
        client_epoch: client.epoch,
        created_at,
        expired_at,
        consumed: false,
        decided: false,
        user_code: keys.nameUserCode((payload as unknown as DeviceCode).userCode),
        sealed
      })
    },
    async find (id) {
      const found = await findStanding(codes, hashToken(id), times.now())
      return found === null ? undefined : open(found.record)
    },
    async findByUserCode (code) {
      const known = await codes.getBy('user_code', keys.nameUserCode(code))
      const found = known === null ? null : await findStanding(codes, known.id, times.now())
      return found === null ? undefined : open(found.record)
    },
    consume: (id) => consumeOnce(parts, 'device_codes', hashToken(id), ({ grant_id }) => grant_id),
    async destroy (id) {
      await codes.delete(hashToken(id))
    },
    revokeByGrantId: (grantId) => endGrant(store, grantId)
  }
}
