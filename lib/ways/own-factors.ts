import { busyError } from '../errors.ts'
import { defined } from '../defined.ts'
import type { FactorView, PasskeyFactorView } from '../pages/contract.ts'
import type { UserRecord } from '../records/user.ts'
import type { Store } from '../store/port.ts'
import { WayError } from './way-error.ts'
import type { HeldWay } from './existing-ways.ts'
import { countCodes } from './recovery-codes.ts'
import { readMaterial } from './passkey-material.ts'
import type { Passkeys } from './passkeys.ts'
import type { WayService } from './ways.ts'

/** What a person has, the first one first. `codes` is the number of recovery codes that are left; absent without a set. */
export interface OwnFactors {
  apps: FactorView[]
  passkeys: PasskeyFactorView[]
  codes?: number
}

interface OwnFactorsParts {
  store: Store
  ways: Pick<WayService, 'list' | 'get' | 'update'>
  passkeys: Pick<Passkeys, 'has' | 'list'>
}

function showFactor ({ id, way: { at }, credential: { name, last_used_at } }: HeldWay): FactorView {
  return defined({ id, at, name, last_used_at })
}

/** A person's second factors, for the pages of their account. Nothing of the material is shown: it has seeds, keys and hashes. */
export function createOwnFactors ({ store, ways, passkeys }: OwnFactorsParts) {
  const users = store.collection<UserRecord>('users')

  function showPasskey (held: HeldWay): PasskeyFactorView {
    const { place } = readMaterial(held.credential)
    const foreign = passkeys.has({ ways: { [held.id]: held.way } }) ? undefined : true
    return { ...showFactor(held), ...defined({ foreign, place }) }
  }

  return {
    /** Empty without such a user. */
    async list (user_id: string): Promise<OwnFactors> {
      const user = await users.get(user_id)
      const held = user === null ? [] : await ways.list(user)
      const listOf = (kind: HeldWay['way']['kind']) => held.filter(({ way }) => way.kind === kind)
      return defined({
        apps: listOf('totp').map(showFactor),
        passkeys: listOf('passkey').map(showPasskey),
        codes: listOf('recovery').length === 0 ? undefined : countCodes(held)
      })
    },

    /** The ids under which the devices of a person know the passkeys that the service accepts. */
    async listCredentialIds (user_id: string): Promise<string[]> {
      const user = await users.get(user_id)
      const held = user === null ? [] : await passkeys.list(user)
      return held.map(({ credential }) => readMaterial(credential).credential_id)
    },

    /** @throws WayError `unknown`; ErrBusy when another use at the same moment has written it: the person tries again */
    async rename (user_id: string, id: string, name: string): Promise<void> {
      const user = await users.get(user_id)
      const held = user && await ways.get(user, id)
      if (held === null) throw new WayError('unknown')
      if (await ways.update(held.credential, { name }) === null) throw busyError('the 2FA method')
    }
  }
}

export type OwnFactorService = ReturnType<typeof createOwnFactors>
