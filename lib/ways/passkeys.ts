import type * as Library from '@simplewebauthn/server'
import type * as Helpers from '@simplewebauthn/server/helpers'
import { type Clock, toTimestamp } from '../clock.ts'
import { paramError } from '../errors.ts'
import type { Failed, Failures } from '../events/failures.ts'
import { Lazy } from '../lazy.ts'
import type { Device } from '../device.ts'
import { type UserRecord, isActive } from '../records/user.ts'
import type { Json, Store } from '../store/port.ts'
import { MOST_WAYS, toWayKey } from '../way.ts'
import { CHALLENGE_TTL, type Purpose, type createChallenges } from './challenges.ts'
import { type Attestation, readAssertion, readAttestation, toUnattested } from './passkey-messages.ts'
import { ALGORITHMS, isVerifiable } from './passkey-keys.ts'
import { type PasskeyMaterial, afterUse, readMaterial, toUserHandle } from './passkey-material.ts'
import type { RelyingParty } from './relying-party.ts'
import { createWaitingPasskeys } from './waiting-passkeys.ts'
import type { HeldWay } from './existing-ways.ts'
import { WayError } from './way-error.ts'
import type { WayActor, WayService } from './ways.ts'
import { type WayPolicy, isForbidden } from './words.ts'

// Loaded at the first ceremony: it takes some tens of MiB.
const library = new Lazy<Pick<typeof Library, 'verifyAuthenticationResponse' | 'verifyRegistrationResponse'>>(async () => await import('@simplewebauthn/server'))
const helpers = new Lazy<Pick<typeof Helpers, 'decodeAttestationObject' | 'decodeCredentialPublicKey'>>(async () => await import('@simplewebauthn/server/helpers'))

/** Milliseconds between two writes of the last use of a passkey without a counter. */
const USE_INTERVAL = 60 * 60_000

/** A credential, as options name it. */
type Descriptor = { type: 'public-key', id: string, transports: string[] }

/** The options of `navigator.credentials.get`, as JSON. */
export interface RequestOptions { challenge: string, rpId: string, timeout: number, userVerification: 'preferred', allowCredentials?: Descriptor[] }

/** The options of `navigator.credentials.create`, as JSON. */
export interface CreationOptions {
  challenge: string
  rp: { id: string, name: string }
  user: { id: string, name: string, displayName: string }
  pubKeyCredParams: { type: 'public-key', alg: number }[]
  timeout: number
  excludeCredentials: Descriptor[]
  authenticatorSelection: { residentKey: 'preferred', requireResidentKey: false, userVerification: 'preferred' }
  attestation: 'none'
  extensions: { credProps: true }
}

const toJson = (material: PasskeyMaterial) => material as unknown as { [field: string]: Json }

/** What an assertion has proved. */
export interface VerifiedPasskey { user: UserRecord, id: string, uv: boolean }

/** A refused assertion. `unknown` is the id of a passkey that no user has: the browser may forget it. */
export interface RefusedPasskey { refused: true, unknown?: string }

const countPasskeys = ({ ways = {} }: Pick<UserRecord, 'ways'>): number => Object.values(ways).filter(({ kind }) => kind === 'passkey').length

function describe ({ credential }: HeldWay): Descriptor {
  const { credential_id: id, transports } = readMaterial(credential)
  return { type: 'public-key', id, transports }
}

/**
 * Passkeys (WebAuthn level 3): how they are added, and how an assertion proves who somebody is.
 * @param party absent: passkeys are off
 * @param why they are off although the operator has not said so
 */
export function createPasskeys ({ store, now, ways, policy, party, why, challenges, serviceName, failures, openFactors, findDevice, onAdd, onWarning }: {
  store: Store
  now: Clock
  ways: WayService
  policy: WayPolicy
  party: RelyingParty | undefined
  why?: string | undefined
  challenges: ReturnType<typeof createChallenges>
  serviceName: string
  failures: Pick<Failures, 'recordFactor' | 'recordSignIn'>
  /** Opens the factors of a user that were closed. */
  openFactors: (user: UserRecord) => Promise<unknown>
  /** The place of the request. */
  findDevice: () => Device
  /** Called before the first passkey of a relying party counts. */
  onAdd: (party: string) => Promise<void>
  onWarning: (message: string) => void
}) {
  const users = store.collection<UserRecord>('users')
  const waiting = createWaitingPasskeys({ store, now })

  /** The passkeys of a user that the service accepts now. */
  async function list (user: Pick<UserRecord, 'id' | 'ways'>): Promise<HeldWay[]> {
    if (party === undefined || !Object.values(user.ways ?? {}).some(({ kind }) => kind === 'passkey')) return []
    return (await ways.list(user)).filter(({ way }) => way.kind === 'passkey' && !isForbidden(way, policy))
  }

  function requireParty (): RelyingParty {
    if (party === undefined) throw new WayError('off')
    return party
  }

  /** Keeps what a use has changed. Another use meanwhile makes it unnecessary: the challenge decides that each is used once. */
  async function keepUse ({ id, credential }: HeldWay, user_id: string, use: Pick<PasskeyMaterial, 'counter' | 'backed_up'>): Promise<void> {
    const material = readMaterial(credential)
    const changed = afterUse(material, use)
    if (changed === null && (credential.last_used_at ?? '') > toTimestamp(now() - USE_INTERVAL)) return
    if (changed !== null && changed.counter_fell !== material.counter_fell) {
      onWarning(`the counter of passkey ${id} of user ${user_id} went from ${material.counter} to ${use.counter}: it may have been copied`)
    }
    await ways.update(credential, { material: toJson({ ...changed ?? material, place: findDevice() }), last_used_at: toTimestamp(now()) })
  }

  /** Whether a signature is right. What the library throws is about the message, and so a refusal. */
  async function checkSignature (
    held: HeldWay, sent: NonNullable<ReturnType<typeof readAssertion>>, { id: expectedRPID, origin: expectedOrigin }: RelyingParty
  ) {
    const { credential_id: id, public_key, backup_eligible } = readMaterial(held.credential)
    const { verifyAuthenticationResponse } = await library.get()
    const credential = { id, publicKey: new Uint8Array(Buffer.from(public_key, 'base64url')), counter: 0 }
    try {
      const { verified, authenticationInfo: info } = await verifyAuthenticationResponse({
        response: sent.json, expectedChallenge: sent.challenge, expectedOrigin, expectedRPID, credential, requireUserVerification: false
      })
      // Whether it can be backed up never changes (WebAuthn, 7.2).
      const isSame = (info.credentialDeviceType === 'multiDevice') === backup_eligible
      return verified && isSame ? { uv: info.userVerified, counter: info.newCounter, backed_up: info.credentialBackedUp } : null
    } catch {
      return null
    }
  }

  /**
   * Verifies a new passkey. Its attestation statement is left out, because none was asked for: to verify one, the library would follow
   * the URLs of revocation lists in certificates that anybody can write.
   */
  async function checkNew ({ json, challenge: expectedChallenge }: Attestation, { id: expectedRPID, origin: expectedOrigin }: RelyingParty) {
    const [{ verifyRegistrationResponse }, { decodeAttestationObject, decodeCredentialPublicKey }] = await Promise.all([library.get(), helpers.get()])
    try {
      const authData = decodeAttestationObject(Uint8Array.from(Buffer.from(json.response.attestationObject, 'base64url'))).get('authData')
      const response = { ...json, response: { ...json.response, attestationObject: toUnattested(authData) } }
      const { registrationInfo } = await verifyRegistrationResponse({
        response, expectedChallenge, expectedOrigin, expectedRPID, requireUserVerification: false, supportedAlgorithmIDs: ALGORITHMS
      })
      const isGood = registrationInfo !== undefined && isVerifiable(decodeCredentialPublicKey(registrationInfo.credential.publicKey))
      return isGood ? registrationInfo : undefined
    } catch {
      return undefined
    }
  }

  /** The options that make a passkey. @throws WayError `off`, `most` */
  async function askNew (user: UserRecord, secret: string): Promise<CreationOptions> {
    const { id } = requireParty()
    if (!ways.canAddFactors) throw new WayError('off')
    if (countPasskeys(user) >= MOST_WAYS.passkey) throw new WayError('most')
    return {
      challenge: challenges.issue('add', secret),
      rp: { id, name: serviceName },
      user: { id: toUserHandle(user.id), name: user.account, displayName: user.name || user.account },
      pubKeyCredParams: ALGORITHMS.map((alg) => ({ type: 'public-key', alg })),
      timeout: CHALLENGE_TTL,
      excludeCredentials: (await list(user)).map(describe),
      authenticatorSelection: { residentKey: 'preferred', requireResidentKey: false, userVerification: 'preferred' },
      attestation: 'none',
      // Says whether a sign-in can begin with it.
      extensions: { credProps: true }
    }
  }

  /** Records a passkey of somebody who may not sign in, or not at this step. @param user_id the user who is asked */
  function recordStranger (user: UserRecord, user_id: string | undefined, method: NonNullable<Failed['method']>): void {
    if (user_id !== undefined) failures.recordFactor(user_id, { reason: 'wrong_code', method: { kind: 'passkey' } })
    else if (user.disabled_at !== undefined) failures.recordSignIn(user.id, '', { reason: 'disabled', method })
    else failures.recordSignIn(user.id, '', { reason: isActive(user, toTimestamp(now())) ? 'wrong_code' : 'expired', method })
  }

  return {
    /** Absent: passkeys are off. */
    party,

    /** Why they are off, for the operator. Absent: they are on, or the operator has turned them off. */
    why,

    list,

    /**
     * The options of an assertion.
     * @param secret of the browser
     * @param user_id absent where a sign-in begins: the person chooses among the passkeys that their device knows
     */
    async ask (purpose: Exclude<Purpose, 'add'>, secret: string, user_id?: string): Promise<RequestOptions> {
      const { id: rpId } = requireParty()
      const user = user_id === undefined ? null : await users.get(user_id)
      const allowCredentials = user_id === undefined ? undefined : user === null ? [] : (await list(user)).map(describe)
      return {
        challenge: challenges.issue(purpose, secret),
        rpId,
        timeout: CHALLENGE_TTL,
        userVerification: 'preferred',
        ...(allowCredentials && { allowCredentials })
      }
    },

    /** Whether a user can add a passkey. */
    mayAdd: (user: Pick<UserRecord, 'ways'>): boolean => party !== undefined && ways.canAddFactors && countPasskeys(user) < MOST_WAYS.passkey,

    askNew,

    /** The same, by the user's id. Null without such a user. */
    async askNewOf (user_id: string, secret: string): Promise<CreationOptions | null> {
      const user = await users.get(user_id)
      return user && await askNew(user, secret)
    },

    /**
     * Verifies a new passkey and stores it. It counts for nothing before the way service names it.
     * @returns its id, to be named within half an hour
     * @throws ErrParam for what was not made for this browser in the last five minutes, WayError, ErrUnknown, ErrLimit
     */
    async prepare (actor: WayActor, secret: string, text: string, name?: string): Promise<string> {
      const relyingParty = requireParty()
      const { id: rp } = relyingParty
      const sent = readAttestation(text)
      const wrong = () => paramError('passkey', 'was not made for this page, or too late')
      if (sent === null || !challenges.isValid(sent.challenge, 'add', secret)) throw wrong()
      const info = await checkNew(sent, relyingParty)
      if (info === undefined || info.credential.id !== sent.id || !await challenges.spend(sent.challenge)) throw wrong()
      const material = toJson({
        credential_id: sent.id,
        public_key: Buffer.from(info.credential.publicKey).toString('base64url'),
        counter: info.credential.counter,
        transports: sent.transports,
        backup_eligible: info.credentialDeviceType === 'multiDevice',
        backed_up: info.credentialBackedUp,
        aaguid: info.aaguid
      })
      await onAdd(rp)
      const key = toWayKey('passkey', sent.id)
      const [id] = await ways.prepare(actor, [{
        kind: 'passkey',
        key,
        uv: info.userVerified,
        ...(sent.rk === false && { rk: false }),
        rp,
        material,
        ...(name !== undefined && { name })
      }])
      await waiting.add(key, id!)
      return id!
    },

    /**
     * Verifies an assertion, which is good once.
     * @param user_id the user who is asked; absent where a sign-in begins
     */
    async verify (purpose: Exclude<Purpose, 'add'>, secret: string, text: string, user_id?: string): Promise<VerifiedPasskey | RefusedPasskey> {
      const sent = readAssertion(text)
      if (party === undefined || sent === null || !challenges.isValid(sent.challenge, purpose, secret)) {
        if (user_id !== undefined) failures.recordFactor(user_id, { reason: sent === null ? 'wrong_code' : 'stale', method: { kind: 'passkey' } })
        return { refused: true }
      }
      const key = toWayKey('passkey', sent.id)
      const found = await ways.find(key)
      if (found === null) {
        if (user_id === undefined) failures.recordSignIn(undefined, sent.id, { reason: 'method_lost', method: { kind: 'passkey' } })
        else failures.recordFactor(user_id, { reason: 'wrong_code', method: { kind: 'passkey' } })
        // Not where the material is missing, or waits to be named: then somebody has it.
        const isUnknown = await users.getBy('way_keys', key) === null && !await waiting.has(key)
        return { refused: true, ...(isUnknown && { unknown: sent.id }) }
      }
      const { user, held } = found
      const isTheirs = (user_id === undefined ? sent.userHandle !== undefined && isActive(user, toTimestamp(now())) : user.id === user_id) &&
        (sent.userHandle ?? toUserHandle(user.id)) === toUserHandle(user.id)
      const isOff = isForbidden(held.way, policy)
      const checked = isTheirs && !isOff ? await checkSignature(held, sent, party) : null
      if (checked === null || !await challenges.spend(sent.challenge)) {
        const method = { kind: 'passkey' as const, id: held.id }
        const reason = isOff ? 'method_off' : checked === null ? 'wrong_code' : 'stale'
        if (isTheirs) failures.recordFactor(user.id, { reason, method, isKnown: user_id !== undefined })
        else recordStranger(user, user_id, method)
        return { refused: true }
      }
      await keepUse(held, user.id, checked)
      if (checked.uv) await openFactors(user)
      return { user, id: held.id, uv: checked.uv }
    },

    /** Whether a user can use a passkey now. It reads no material. */
    has ({ ways: named = {} }: Pick<UserRecord, 'ways'>): boolean {
      return party !== undefined && Object.values(named).some((way) => way.kind === 'passkey' && !isForbidden(way, policy))
    }
  }
}

export type Passkeys = ReturnType<typeof createPasskeys>
