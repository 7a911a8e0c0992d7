/**
 * The ways of people to prove who they are.
 * @module
 */
import type { Base } from '../base.ts'
import { deriveKeys } from '../crypto/derive-key.ts'
import type { Failures } from '../events/failures.ts'
import type { UserRecord } from '../records/user.ts'
import type { Roles } from '../roles.ts'
import type { Attempts } from '../throttling/attempts.ts'
import { createUndos } from '../user-changes/undos.ts'
import type { UserChanges } from '../user-changes/user-changes.ts'
import { createChallenges } from './challenges.ts'
import { createEvidenceCheck } from './evidence.ts'
import { type FactorChangesParts, createFactorChanges } from './factor-changes.ts'
import { type FactorsParts, createFactors } from './factors.ts'
import { createForeignPasskeys } from './foreign-passkeys.ts'
import { createOwnFactors } from './own-factors.ts'
import { createPasskeys } from './passkeys.ts'
import type { FoundParty } from './relying-party.ts'
import { createWays } from './ways.ts'
import { type WayPolicy, endsSessions } from './words.ts'

interface WayParts extends Base, Pick<FactorChangesParts, 'tickets' | 'notices' | 'undoHours'>, Pick<FactorsParts, 'slow'> {
  changes: Pick<UserChanges, 'changeUser' | 'requireUser'>
  attempts: Attempts
  failures: Pick<Failures, 'recordFactor' | 'recordSignIn'>
  policy: WayPolicy
  /** The relying party of passkeys, or why there is none. */
  found: FoundParty
  /** What authenticator apps and passkeys are shown under. Absent: what the service has otherwise. */
  serviceName?: string | undefined
  onWarning: (message: string) => void
}

/** Opens what people have to prove who they are. */
export function openWays (parts: WayParts) {
  const { store, now, box, report, policy, found: { party, text: why }, serviceName, failures, notices, onWarning } = parts
  const ways = createWays(parts)
  const factors = createFactors({ ...parts, ways, serviceName: serviceName ?? 'fastify-identity' })
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
    findDevice: notices.findDevice,
    onAdd: foreign.add,
    onWarning
  })
  return {
    ways,
    factors: { ...factors, ...createFactorChanges({ ...parts, ways, undos: createUndos(parts), onError: report('users') }) },
    passkeys,
    ownFactors: createOwnFactors({ store, ways, passkeys }),
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
