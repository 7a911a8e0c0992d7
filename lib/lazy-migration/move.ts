import type { Base } from '../base.ts'
import { checkLine } from '../import/check-line.ts'
import type { ImportServices } from '../import/parts.ts'
import { createImported } from '../import/new-user.ts'
import { createPeople } from '../import/people.ts'
import { Refused } from '../import/refused.ts'
import { createRemembered } from '../import/remembered.ts'
import { type UserRecord, isActive } from '../records/user.ts'
import { toTimestamp } from '../clock.ts'
import { DuplicateKeyError } from '../store/port.ts'
import type { Passwords } from '../users/passwords.ts'
import type { StoredUsers } from '../users/stored-users.ts'
import type { Person } from './answer.ts'

/** The name under which ids of the former system are kept, of people whom no import has brought in. */
const SOURCE = 'migrate'

export interface MoveParts extends Base, Pick<ImportServices, 'seedKey' | 'cost' | 'formerImports'> {
  stored: Pick<StoredUsers, 'users' | 'insertUser' | 'changeUser'>
  passwords: Pick<Passwords, 'hash' | 'verify'>
  /** Whether an address counts that the former system calls verified. */
  trustEmails: boolean
}

/** Somebody else has changed the person meanwhile. */
class Moved extends Error {}

/** Writes people whom the former system has vouched for: by one write each, as a line of an import would. */
export function createMove ({ store, stored, passwords, formerImports, trustEmails, ...parts }: MoveParts) {
  const people = createPeople(store)
  const remembered = createRemembered(store)

  /** @throws Refused, ErrParam */
  async function check (account: string, { id, ...person }: Person) {
    return await checkLine({
      ...person, ...(id !== undefined && { id, external: { [SOURCE]: id } }), account
    }, { trustEmails }, { ...parts, canAddFactors: false, now: parts.now() })
  }

  return {
    /**
     * Creates somebody who is not here.
     * @param password what they have typed. Absent: they get none, and are asked for it at the former system once more
     * @returns null when somebody else has the account by now, or when nobody could tell them of a link
     * @throws Refused, ErrParam
     */
    async createPerson (account: string, person: Person, password?: string): Promise<UserRecord | null> {
      const line = await check(account, person)
      await people.checkFree(line, { remembered, formerImports })
      // A link goes to an address that is known to be theirs.
      if (password === undefined && line.email === undefined) return null
      const hashed = password === undefined ? {} : { password: { stored: await passwords.hash(password), scheme: 'own', work: 0 } }
      const { imported_run: _run, imported_revision: _revision, ...user } = createImported(
        { ...line, ...hashed }, { ...parts, now: parts.now(), source: SOURCE, run: SOURCE, findUpstream: () => undefined, lazy: true }, undefined
      ).user
      const happened = (['user.created', ...(password === undefined ? [] : ['user.migrated'] as const)] as const).map((type) => ({ type, id: user.id }))
      try {
        await stored.insertUser(user, happened, () => new DuplicateKeyError('account'))
        return user
      } catch (error) {
        if (!(error instanceof DuplicateKeyError)) throw error
        if (error.field === 'account') return null
        throw await people.findClash(user) ?? error
      }
    },

    /**
     * Gives a marked person the password that they have typed. Nothing else of them changes.
     * @returns null when the mark has ended meanwhile
     * @throws Refused when the answer is about somebody else
     */
    async complete ({ id, external = {}, imported_source: source = '' }: UserRecord, person: Person, password: string): Promise<UserRecord | null> {
      if (person.id !== undefined && person.id !== id && person.id !== external[source]) {
        throw new Refused('id', 'is not that of the person who was imported with this account')
      }
      const hashed = await passwords.hash(password)
      try {
        return await stored.changeUser(id, (record) => {
          if (record.imported_lazy !== true || record.password || !isActive(record, toTimestamp(parts.now()))) throw new Moved()
          return { set: { password: hashed }, unset: ['invited_at'], increment: { epoch: 1 }, happened: [{ type: 'user.migrated', id }] }
        }, { notFound: () => new Moved() })
      } catch (error) {
        if (error instanceof Moved) return null
        throw error
      }
    }
  }
}
