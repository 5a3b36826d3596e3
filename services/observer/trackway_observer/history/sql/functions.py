"""Functions that a SELECT may call, by what they are for.

They only compute from their arguments: none reads a file, a dictionary, another table, the server or the network,
none waits, and none takes a function or a table by its name.
"""

from __future__ import annotations

_AGGREGATES = """
    count sum avg min max any anyLast anyHeavy argMin argMax median quantile quantiles quantileExact quantilesExact
    quantileTDigest quantilesTDigest quantileDeterministic quantileExactWeighted quantileTiming
    quantileInterpolatedWeighted uniq uniqExact uniqCombined uniqHLL12 groupArray groupUniqArray groupArraySorted
    groupArrayMovingAvg groupArrayMovingSum groupBitAnd groupBitOr groupBitXor groupConcat string_agg sumKahan
    sumWithOverflow deltaSum deltaSumTimestamp stddevPop stddevSamp varPop varSamp stddev_pop stddev_samp var_pop
    var_samp stddev covarPop covarSamp corr covar_pop covar_samp skewPop skewSamp kurtPop kurtSamp
    simpleLinearRegression topK topKWeighted histogram entropy exponentialMovingAverage exponentialTimeDecayedAvg
    avgWeighted first_value last_value any_value sequenceMatch sequenceCount windowFunnel retention
    intervalLengthSum maxIntersections maxIntersectionsPosition studentTTest welchTTest mannWhitneyUTest
    kolmogorovSmirnovTest meanZTest rankCorr cramersV contingency max_by min_by sumCount uniqUpTo uniqCombined64
    medianExact medianTDigest array_agg group_concat approx_top_k approx_top_sum regr_slope regr_intercept regr_r2
    regr_count boundingRatio singleValueOrNull largestTriangleThreeBuckets sparkbar
"""
_WINDOW = """
    row_number rank dense_rank denseRank percent_rank percentRank cume_dist ntile lag lead lagInFrame leadInFrame
    nth_value nonNegativeDerivative
"""
_CONDITIONS = """
    if multiIf ifNull nullIf coalesce isNull isNotNull isNullable isZeroOrNull assumeNotNull toNullable greatest
    least and or not xor equals notEquals less greater lessOrEquals greaterOrEquals transform isDistinctFrom
    isNotDistinctFrom clamp ignore isNaN isFinite isInfinite ifNotFinite
"""
_NUMBERS = """
    abs sign round floor ceil ceiling trunc truncate roundBankers roundToExp2 roundDown roundAge roundDuration exp
    exp2 exp10 log ln log2 log10 log1p sqrt cbrt pow power sin cos tan asin acos atan atan2 sinh cosh tanh erf erfc
    lgamma tgamma degrees radians hypot pi e sigmoid plus minus multiply divide intDiv intDivOrZero modulo mod
    moduloOrZero positiveModulo negate gcd lcm bitAnd bitOr bitXor bitNot bitShiftLeft bitShiftRight bitTest
    bitCount bitHammingDistance max2 min2 factorial widthBucket width_bucket byteSwap proportionsZTest
    minSampleSizeConversion divideDecimal multiplyDecimal
"""
_TIMES = """
    now now64 today yesterday toDate toDate32 toDateTime toDateTime64 toDateOrNull toDateOrZero toDateTimeOrNull
    toDateTimeOrZero toDateTime64OrNull toDateTime64OrZero date timestamp toYear toQuarter toMonth toDayOfYear
    toDayOfMonth toDayOfWeek toHour toMinute toSecond toMillisecond year quarter month day dayOfYear dayOfMonth
    dayOfWeek hour minute second millisecond week toStartOfYear toStartOfISOYear toStartOfQuarter toStartOfMonth
    toLastDayOfMonth toMonday toStartOfWeek toStartOfDay toStartOfHour toStartOfMinute toStartOfSecond
    toStartOfFiveMinutes toStartOfTenMinutes toStartOfFifteenMinutes toStartOfInterval toLastDayOfWeek toWeek
    toYearWeek toISOWeek toISOYear toTime toRelativeYearNum toRelativeMonthNum toRelativeWeekNum toRelativeDayNum
    toRelativeHourNum toRelativeMinuteNum toRelativeSecondNum toYYYYMM toYYYYMMDD toYYYYMMDDhhmmss toUnixTimestamp
    toUnixTimestamp64Second toUnixTimestamp64Milli toUnixTimestamp64Micro toUnixTimestamp64Nano fromUnixTimestamp
    fromUnixTimestamp64Second fromUnixTimestamp64Milli fromUnixTimestamp64Micro fromUnixTimestamp64Nano toTimeZone
    toTimezone timeZoneOf timeZoneOffset dateDiff date_diff dateAdd date_add dateSub date_sub dateTrunc date_trunc
    dateName age timeDiff timeSlot timeSlots addYears addQuarters addMonths addWeeks addDays addHours addMinutes
    addSeconds addMilliseconds addInterval subtractYears subtractQuarters subtractMonths subtractWeeks subtractDays
    subtractHours subtractMinutes subtractSeconds subtractMilliseconds subtractInterval toIntervalYear
    toIntervalQuarter toIntervalMonth toIntervalWeek toIntervalDay toIntervalHour toIntervalMinute toIntervalSecond
    toIntervalMillisecond formatDateTime formatDateTimeInJodaSyntax parseDateTime parseDateTimeOrNull
    parseDateTimeBestEffort parseDateTimeBestEffortOrNull parseDateTime64BestEffort parseDateTime64BestEffortOrNull
    monthName makeDate toDaysInMonth toStartOfMillisecond toDateTime32 timestampDiff timestamp_diff date_bin
    time_bucket parseReadableSize parseTimeDelta makeDateTime extract tumble tumbleStart tumbleEnd UUIDv7ToDateTime
    current_timestamp current_date
"""
_TEXTS = """
    length lengthUTF8 char_length character_length octet_length empty notEmpty lower upper lcase ucase lowerUTF8
    upperUTF8 initcap reverse reverseUTF8 concat concatWithSeparator concat_ws substring substr mid substringUTF8
    substringIndex left right leftUTF8 rightUTF8 leftPad rightPad lpad rpad repeat space trim ltrim rtrim trimBoth
    trimLeft trimRight startsWith endsWith startsWithUTF8 endsWithUTF8 position positionUTF8 locate
    positionCaseInsensitive positionCaseInsensitiveUTF8 multiSearchAny multiSearchAnyCaseInsensitive
    multiSearchFirstIndex multiSearchFirstPosition multiSearchAllPositions countSubstrings
    countSubstringsCaseInsensitive countMatches countMatchesCaseInsensitive like ilike notLike notILike match
    extractAll extractGroups extractAllGroups extractAllGroupsVertical regexpExtract regexpQuoteMeta replace
    replaceOne replaceAll replaceRegexpOne replaceRegexpAll regexp_replace translate translateUTF8 splitByChar
    splitByString splitByRegexp splitByWhitespace splitByNonAlpha alphaTokens tokens ngrams arrayStringConcat printf
    hasToken hasTokenCaseInsensitive hasSubsequence formatReadableSize formatReadableDecimalSize
    formatReadableQuantity formatReadableTimeDelta bar toValidUTF8 isValidUTF8 ascii char hex unhex bin base64Encode
    base64Decode tryBase64Decode appendTrailingCharIfAbsent levenshteinDistance damerauLevenshteinDistance
    editDistance jaroSimilarity jaroWinklerSimilarity ngramDistance ngramSearch soundex encodeXMLComponent
    decodeXMLComponent domain path basename firstLine cityHash64 xxHash32 xxHash64 xxh3 sipHash64 farmHash64
    murmurHash3_64 intHash64 CRC32 halfMD5 MD5 SHA1 SHA256
"""
_CASTS = """
    cast accurateCast accurateCastOrNull accurateCastOrDefault toString toFixedString toBool toTypeName toInt8
    toInt16 toInt32 toInt64 toInt128 toInt256 toUInt8 toUInt16 toUInt32 toUInt64 toUInt128 toUInt256 toInt8OrNull
    toInt16OrNull toInt32OrNull toInt64OrNull toUInt8OrNull toUInt16OrNull toUInt32OrNull toUInt64OrNull
    toInt8OrZero toInt16OrZero toInt32OrZero toInt64OrZero toUInt8OrZero toUInt16OrZero toUInt32OrZero
    toUInt64OrZero toFloat32 toFloat64 toFloat32OrNull toFloat64OrNull toFloat32OrZero toFloat64OrZero toDecimal32
    toDecimal64 toDecimal128 toDecimalString toUUID toUUIDOrNull toUUIDOrZero reinterpretAsUInt64 toLowCardinality
    byteSize identity materialize
"""
_COLLECTIONS = """
    array arrayJoin arrayMap arrayFilter arrayExists arrayAll arrayCount arraySum arrayAvg arrayMin arrayMax
    arrayProduct arrayFirst arrayFirstIndex arrayFirstOrNull arrayLast arrayLastIndex arrayLastOrNull arraySort
    arrayReverseSort arrayPartialSort arrayReverse arrayDistinct arrayUniq arrayConcat arrayElement
    arrayElementOrNull arraySlice arrayPushBack arrayPushFront arrayPopBack arrayPopFront arrayResize arrayCompact
    arrayFlatten flatten arrayZip arrayZipUnaligned arrayEnumerate arrayEnumerateDense arrayEnumerateUniq
    arrayCumSum arrayCumSumNonNegative arrayDifference arrayFill arrayReverseFill arraySplit arrayReverseSplit
    arrayIntersect arrayUnion arrayExcept arrayFold arrayRotateLeft arrayRotateRight arrayDotProduct
    arrayWithConstant arrayLevenshteinDistance has hasAll hasAny hasSubstr indexOf countEqual range emptyArrayString
    emptyArrayToSingle arrayNormalizedGini dynamicElement dynamicType variantElement variantType tuple tupleElement
    untuple tupleConcat tuplePlus tupleMinus tupleToNameValuePairs map mapFromArrays mapKeys mapValues mapContains
    mapContainsKey mapContainsValue mapContainsKeyLike mapExtractKeyLike mapFilter mapApply mapExists mapAll mapSort
    mapReverseSort mapAdd mapSubtract mapConcat mapUpdate columns
"""
_JSON = """
    JSONHas JSONLength JSONType JSONKey JSONExtract JSONExtractString JSONExtractInt JSONExtractUInt
    JSONExtractFloat JSONExtractBool JSONExtractRaw JSONExtractArrayRaw JSONExtractKeysAndValues
    JSONExtractKeysAndValuesRaw JSONExtractKeys JSONArrayLength JSON_VALUE JSON_QUERY JSON_EXISTS isValidJSON
    toJSONString simpleJSONHas simpleJSONExtractString simpleJSONExtractInt simpleJSONExtractUInt
    simpleJSONExtractFloat simpleJSONExtractBool simpleJSONExtractRaw visitParamHas visitParamExtractString
    visitParamExtractInt visitParamExtractUInt visitParamExtractFloat visitParamExtractBool visitParamExtractRaw
    JSONAllPaths JSONAllPathsWithTypes JSONMergePatch
"""

AGGREGATES = frozenset(_AGGREGATES.split())
COMBINATORS = ("If", "Array", "Map", "Distinct", "OrDefault", "OrNull", "ArgMin", "ArgMax")
"""Suffixes of an aggregate that only change which rows count, and over what."""
SCALARS = frozenset(" ".join((_WINDOW, _CONDITIONS, _NUMBERS, _TIMES, _TEXTS, _CASTS, _COLLECTIONS, _JSON)).split())
FUNCTIONS = SCALARS | AGGREGATES
