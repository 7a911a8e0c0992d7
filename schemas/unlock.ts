import { type Static, Type } from '@sinclair/typebox'
import { Data, TimestampSchema } from './common.ts'
import { ReasonCodeSchema } from './reason.ts'

const PartSchema = Type.Union([Type.Literal('password'), Type.Literal('confirmation'), Type.Literal('factor'), Type.Literal('limit')], {
  description: 'The password at sign-ins; the password that a signed-in person types again; an authenticator app, or the backup codes; the limit of attempts within a minute.'
})

const FactorId = Type.Optional(Type.String({ description: 'Of `factor`: which one.' }))

const OpenedSchema = Type.Object({
  part: PartSchema,
  factor_id: FactorId,
  reason: ReasonCodeSchema,
  until: Type.Optional(Type.String({ ...TimestampSchema, description: 'Until when it would have been refused. Absent: waiting would not have helped.' }))
}, { title: 'Opened' })

/** What an operator has opened of an account. */
export const UnlockedSchema = Type.Object({
  opened: Type.Array(OpenedSchema),
  not_closed: Type.Array(Type.Object({ part: PartSchema, factor_id: FactorId }), { description: 'What refused nothing before.' }),
  elsewhere_until: Type.Optional(Type.String({
    ...TimestampSchema, description: 'Until when another machine may still refuse attempts, because each counts those of a minute itself. Absent: there is none.'
  }))
}, { title: 'Unlocked' })
export type Unlocked = Static<typeof UnlockedSchema>

/** A part of an account before it was opened: without a reason it was not closed. */
export type Opening = Pick<Unlocked['opened'][number], 'part' | 'factor_id' | 'until'> & Partial<Pick<Unlocked['opened'][number], 'reason'>>

export const UnlockedDataSchema = Data(UnlockedSchema)
