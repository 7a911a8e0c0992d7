/**
 * The ways of people to prove who they are.
 * @module
 */
import type { Clock } from '../clock.ts'
import { deriveKeys } from '../crypto/derive-key.ts'
import type { SecretBox } from '../crypto/secrets.ts'
import type { Failures } from '../events/failures.ts'
import type { Recorder } from '../events/recorder.ts'
import type { Place } from '../place.ts'
import type { Roles, UserRecord } from '../records.ts'
import type { Store } from '../store/port.ts'
import type { Attempts } from '../throttling/attempts.ts'
import type { Tokens } from '../tokens/tokens.ts'
import { createChallenges } from './challenges.ts'
import { createEvidenceCheck } from './evidence.ts'
import { type FactorsParts, createFactors } from './factors.ts'
import { createForeignPasskeys } from './foreign-passkeys.ts'
import { createJudge } from './may-sign-in.ts'
import { createPasskeys } from './passkeys.ts'
import type { FoundParty } from './relying-party.ts'
import { createWays } from './ways.ts'
import { type WayPolicy, endsSessions } from './words.ts'

interface WayParts {
  store: Store
  now: Clock
  box: SecretBox
  recorder: Pick<Recorder, 'attach' | 'insert'>
  tokens: Pick<Tokens, 'deleteOfUser'>
  attempts: Attempts
  failures: Pick<Failures, 'recordFactor' | 'recordSignIn'>
  policy: WayPolicy
  /** The relying party of passkeys, or why there is none. */
  found: FoundParty
  /** What authenticator apps and passkeys are shown under. Absent: what the service has otherwise. */
  serviceName?: string | undefined
  notices: FactorsParts['notices']
  findPlace: () => Place
  /** Whether the provider of an identity has ended what was proved with it. Absent: there are no other providers. */
  isOver?: Parameters<typeof createJudge>[0]['isOver']
  onError: (error: unknown) => void
  onWarning: (message: string) => void
}

/** Opens what people have to prove who they are, and the judgement about it. */
export function openWays ({ store, now, box, recorder, tokens, attempts, failures, policy, found: { party, text: why }, serviceName, notices, findPlace, isOver, onError, onWarning }: WayParts) {
  const ways = createWays({ store, now, recorder, tokens, policy, onError })
  const factors = createFactors({ store, now, ways, box, attempts, recorder, failures, serviceName: serviceName ?? 'fastify-identity', notices })
  const foreign = createForeignPasskeys(store)
  const passkeys = createPasskeys({
    store,
    now,
    ways,
    policy,
    party,
    why,
    challenges: createChallenges({ store, now, keys: deriveKeys(box.keys, 'passkeys') }),
    serviceName: serviceName ?? party?.id ?? '',
    failures,
    openFactors: factors.open,
    findPlace,
    onAdd: foreign.add,
    onWarning
  })
  return {
    ways,
    factors,
    passkeys,
    maySignIn: createJudge({ store, now, ways, policy, isOver }),
    checkEvidence: createEvidenceCheck({ ways, policy }),

    /** Whether a change of roles ends the sessions of a user. */
    endsSessions: async (record: UserRecord, roles: Roles): Promise<boolean> => endsSessions(await ways.withExisting(record), roles, policy),

    /** Warns of passkeys that do not work, because they belong to another relying party. */
    async warnOfForeign (): Promise<void> {
      const count = await foreign.count(party?.id)
      if (count > 0) onWarning(`${count} passkeys do not work: they belong to another relying party than ${party?.id ?? 'none'}`)
    }
  }
}
